"""Fixtures for tests of version control."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from .repositories import KINDS, ColocatedRepository, GitRepository, JjRepository, Repository

LOCAL_JJ = Path(__file__).parents[2] / ".dev" / "jj" / "bin"


@pytest.fixture
def need_jj(monkeypatch: pytest.MonkeyPatch) -> None:
    """jj on PATH, with a user; skips where there is none."""
    if shutil.which("jj") is None:
        if not (LOCAL_JJ / "jj").exists():
            pytest.skip("jj is not installed: run `dev/jj.sh .dev/jj` to get it")
        monkeypatch.setenv("PATH", f"{LOCAL_JJ}{os.pathsep}{os.environ['PATH']}")
    config = Path(os.environ["HOME"]) / ".config" / "jj" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('user.name = "Test"\nuser.email = "test@example.org"\n')


@pytest.fixture(params=list(KINDS))
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    """A repository of every kind, before its first commit."""
    if request.param != "git":
        request.getfixturevalue("need_jj")
    return KINDS[request.param](tmp_path / "repo")


@pytest.fixture
def repository(empty: Repository) -> Repository:
    """A repository of every kind with one commit on main."""
    empty.begin()
    return empty


@pytest.fixture
def git_repository(tmp_path: Path) -> GitRepository:
    """A git repository with one commit on main."""
    made = GitRepository(tmp_path / "repo")
    made.begin()
    return made


@pytest.fixture
def jj_repository(need_jj: None, tmp_path: Path) -> JjRepository:
    """A jj repository with one commit on main."""
    made = JjRepository(tmp_path / "repo")
    made.begin()
    return made


@pytest.fixture
def colocated(need_jj: None, tmp_path: Path) -> ColocatedRepository:
    """A jj repository beside its git repository, with one commit on main."""
    made = ColocatedRepository(tmp_path / "repo")
    made.begin()
    return made
