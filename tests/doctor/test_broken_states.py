"""The doctor says what is wrong where nothing can work: each state is broken for real."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import Clock, Rook, git
from rookery.base.check import ERROR, OK, WARNING, Place
from rookery.doctor.checks import check_disk


def settings(rook: Rook, **values: Any) -> None:
    (rook.folder / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(values))


def findings(rook: Rook, category: str, **env: str) -> dict[str, dict[str, Any]]:
    report = rook.json("doctor", "--category", category, env=env).envelope["data"]
    return {check["name"]: check for check in report["checks"]}


def exit_status(rook: Rook, category: str, **env: str) -> int:
    return rook("doctor", "--category", category, env=env).status


@pytest.fixture
def claude(rook: Rook, tmp_path: Path) -> dict[str, str]:
    """A project whose agents run on Claude Code, and the home of a person who has it but is not logged in."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    home = tmp_path / "person"
    (home / ".claude").mkdir(parents=True)
    settings(rook, agents={"runtime": "claude"})
    return {"HOME": str(home), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def test_the_agents_program_is_missing(rook: Rook) -> None:
    assert findings(rook, "environment")["scripted"]["status"] == OK
    settings(rook, agents={"runtime": "claude"}, claude={"program": "/nowhere/claude"})
    finding = findings(rook, "environment")["claude"]
    assert finding["status"] == ERROR
    assert "/nowhere/claude is not installed" in finding["message"]
    assert "npm install" in finding["hint"]
    assert exit_status(rook, "environment") == 1


def test_the_runtime_of_agents_is_not_there(rook: Rook) -> None:
    settings(rook, agents={"runtime": "clod"})
    assert exit_status(rook, "config") == 1
    assert findings(rook, "config")["agents.runtime"]["status"] == ERROR
    assert "clod" not in findings(rook, "environment")


def test_the_agents_program_is_logged_out(rook: Rook, claude: dict[str, str]) -> None:
    out = findings(rook, "environment", **claude)
    assert out["claude"]["status"] == OK
    assert out["claude login"]["status"] == ERROR
    assert "not logged in" in out["claude login"]["message"]
    assert "/login" in out["claude login"]["hint"]
    assert exit_status(rook, "environment", **claude) == 1


@pytest.mark.parametrize(
    ("hours", "status", "says"), [(1, OK, ".credentials.json"), (-1, ERROR, "agents cannot renew it")]
)
def test_a_login_counts_until_it_ends(rook: Rook, claude: dict[str, str], hours: float, status: str, says: str) -> None:
    login = {"accessToken": "sk-ant-oat01-x", "refreshToken": "y", "expiresAt": (time.time() + hours * 3600) * 1000}
    path = Path(claude["HOME"], ".claude", ".credentials.json")
    path.write_text(json.dumps({"claudeAiOauth": login}))
    finding = findings(rook, "environment", **claude)["claude login"]
    assert finding["status"] == status
    assert says in finding["message"]


def test_a_key_is_a_login_and_what_cannot_be_known_is_said_to_be_unknown(rook: Rook, claude: dict[str, str]) -> None:
    assert findings(rook, "environment", **claude, ANTHROPIC_API_KEY="x")["claude login"]["status"] == OK
    settings(rook, agents={"runtime": "claude"}, claude={"share_login": False})
    finding = findings(rook, "environment", **claude)["claude login"]
    assert finding["status"] == WARNING
    assert finding["message"].startswith("unknown")


def test_git_does_not_know_who_commits(rook: Rook) -> None:
    for key in ("user.name", "user.email"):
        git(rook.folder, "config", "--local", key, "")
    finding = findings(rook, "vcs")["identity"]
    assert finding["status"] == WARNING
    assert "no user.name and no user.email" in finding["message"]
    assert "git config --global user.email" in finding["hint"]
    assert "no user.name" in rook("init", "--yes", "--no-gates").out.decode()
    git(rook.folder, "config", "--local", "user.name", "Ada")
    assert "no user.email" in findings(rook, "vcs")["identity"]["message"]
    git(rook.folder, "config", "--local", "user.email", "ada@example.org")
    assert findings(rook, "vcs")["identity"]["status"] == OK
    assert "user.email" not in rook("init", "--yes", "--no-gates").out.decode()


def test_the_base_was_renamed(rook: Rook) -> None:
    base = git(rook.folder, "symbolic-ref", "--short", "HEAD")
    settings(rook, project={"base": base})
    assert findings(rook, "merge")["base branch"]["status"] == OK
    git(rook.folder, "branch", "-m", base, "trunk")
    finding = findings(rook, "merge")["base branch"]
    assert finding["status"] == ERROR
    assert f"project.base is {base}" in finding["message"]
    assert exit_status(rook, "merge") == 1
    settings(rook, project={"base": "trunk"})
    assert findings(rook, "merge")["base branch"]["status"] == OK


@pytest.mark.parametrize(
    ("run", "status"),
    [
        ("no-such-program-anywhere --check", ERROR),
        ("./no-such-script", WARNING),
        ("true", None),
        ("cd src && no-such-program-anywhere", None),
        ("X=1 true", None),
    ],
)
def test_the_program_of_a_gate_is_missing(rook: Rook, run: str, status: str | None) -> None:
    settings(rook, gates=[{"name": "tests", "run": run}])
    finding = findings(rook, "merge").get("gate tests")
    assert (finding["status"] if finding else None) == status
    if finding is not None:
        assert run.split()[0] in finding["message"]
        assert "rook doctor --gates" in finding["hint"]


def test_submodules_are_empty_in_worktrees(rook: Rook, repo: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(tmp_path, "clone", "-q", str(repo), str(library))
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(repo, "commit", "-qm", "Add a library")
    before = findings(rook, "vcs")
    assert "provision.setup" in before["new submodules"]["hint"]
    assert "submodules" not in before
    worktree = repo / ".rookery" / "worktrees" / "bee"
    git(repo, "worktree", "add", "-q", "-b", "rook/bee/task", str(worktree))
    finding = findings(rook, "vcs")["submodules"]
    assert finding["status"] == WARNING
    assert finding["message"] == "bee's worktree lacks the files of the submodule lib"
    git(worktree, "-c", "protocol.file.allow=always", "submodule", "update", "--init", "-q", "--recursive")
    settings(rook, provision={"setup": "git submodule update --init --recursive"})
    assert not {"submodules", "new submodules"} & findings(rook, "vcs").keys()


def test_lfs_files_are_pointers(rook: Rook, repo: Path) -> None:
    (repo / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (repo / "a.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    git(repo, "add", ".gitattributes", "a.bin")
    git(repo, "commit", "-qm", "Add a large file")
    assert "git lfs install" in findings(rook, "vcs")["new lfs"]["hint"]
    worktree = repo / ".rookery" / "worktrees" / "bee"
    git(repo, "worktree", "add", "-q", "-b", "rook/bee/task", str(worktree))
    finding = findings(rook, "vcs")["lfs"]
    assert finding["message"] == "bee's worktree has only pointers to 1 LFS files, such as a.bin"
    (worktree / "a.bin").write_bytes(b"\0real")
    git(repo, "config", "filter.lfs.smudge", "cat")
    assert not {"lfs", "new lfs"} & findings(rook, "vcs").keys()


@pytest.mark.parametrize(("mode", "status"), [("headless", WARNING), ("tmux", ERROR)])
def test_tmux_is_missing(rook: Rook, tmp_path: Path, mode: str, status: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(str(shutil.which("git")))
    settings(rook, agents={"mode": mode})
    finding = findings(rook, "terminal", PATH=str(programs))["tmux"]
    assert finding["status"] == status
    assert "install tmux" in finding["hint"]


@pytest.mark.parametrize(("free", "status"), [(50_000_000, ERROR), (500_000_000, WARNING), (5_000_000_000, OK)])
def test_the_disk_is_nearly_full(tmp_path: Path, free: int, status: str) -> None:
    (finding,) = check_disk(Place(None, str(tmp_path)), lambda _folder: (10**12, 10**12 - free, free))
    assert finding.status == status
    assert (finding.hint == "") is (status == OK)


def test_the_clock_was_set_back(rook: Rook, clock: Clock) -> None:
    rook("task", "create", "One")
    assert findings(rook, "install")["clock"]["status"] == OK
    clock.advance(hours=-24)
    finding = findings(rook, "install")["clock"]
    assert finding["status"] == WARNING
    assert "was set back" in finding["message"]
