"""The `vcs` operations, called as every interface calls them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rookery.ops.vcs  # noqa: F401
from rookery.base.errors import InvalidInput, NoRepository, NotInitialised
from rookery.config.environ import read_environ
from rookery.config.model import Config, VcsConfig
from rookery.ops.context import Context
from rookery.ops.operation import call, declared
from rookery.ops.vcs import Committed, Detected, Difference
from rookery.vcs.model import Change, Status


def vcs(folder: Path, name: str, **values: Any) -> Any:
    ctx = Context(cwd=str(folder))
    ctx._config = Config()
    return call(ctx, declared()[f"vcs {name}"], values)


def head(folder: Path) -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_detect_says_where_it_stands(repo: Path) -> None:
    (repo / "deep").mkdir()
    assert vcs(repo / "deep", "detect") == Detected("git", str(repo), str(repo), "main", head(repo))


def test_outside_a_repository_detect_answers_and_the_others_refuse(tmp_path: Path) -> None:
    assert vcs(tmp_path, "detect") == Detected("none")
    for name, values in (("status", {}), ("log", {}), ("diff", {}), ("commit", {"message": "x"})):
        with pytest.raises(NoRepository):
            vcs(tmp_path, name, **values)


def test_status_log_and_commit(repo: Path) -> None:
    (repo / "a").write_text("x\n")
    assert vcs(repo, "status") == Status("main", head(repo), (Change("a", "untracked"),))
    commit = vcs(repo, "commit", message="Add a")
    assert commit == Committed(head(repo), "main", "Add a")
    assert [entry.message for entry in vcs(repo, "log")] == ["Add a", "Begin"]
    assert [entry.message for entry in vcs(repo, "log", limit=1)] == ["Add a"]
    with pytest.raises(InvalidInput):
        vcs(repo, "log", limit=0)


def test_diff_gives_the_patch_only_when_asked(repo: Path) -> None:
    base = head(repo)
    (repo / "README.md").write_text("hello\nworld\n")
    vcs(repo, "commit", message="Say more")
    assert vcs(repo, "diff") == Difference(None, ())
    difference = vcs(repo, "diff", base=base)
    assert (difference.base, difference.patch, [file.path for file in difference.files]) == (base, None, ["README.md"])
    assert "+world" in vcs(repo, "diff", base=base, patch=True).patch


def test_only_commit_changes_anything() -> None:
    ours = {name: operation for name, operation in declared().items() if operation.run.__module__ == "rookery.ops.vcs"}
    assert {name for name, operation in ours.items() if operation.changes_state} == {"vcs commit"}
    assert {operation.view for operation in ours.values()} == {name.replace(" ", ".") for name in ours}
    assert {param.short for param in ours["vcs commit"].params} == {"m"}


def test_without_a_project_the_users_settings_hold(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_config(root: str | None, _environ: object, _flags: object) -> SimpleNamespace:
        asked.append(root)
        return SimpleNamespace(config=Config(vcs=VcsConfig(backend="jj")))

    monkeypatch.setattr("rookery.config.loader.load_config", load_config)
    with pytest.raises(NoRepository, match="no jj repository"):
        Context(cwd=str(repo)).vcs()
    assert asked == [None]
    with pytest.raises(NotInitialised):
        Context(cwd=str(repo), environ=read_environ({"ROOKERY_ROOT": str(repo)})).vcs()
    (repo / ".rookery").mkdir()
    (repo / ".rookery" / "rookery.db").touch()
    with pytest.raises(NoRepository):
        Context(cwd=str(repo)).vcs()
    assert asked == [None, str(repo)]
