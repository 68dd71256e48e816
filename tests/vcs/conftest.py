"""Fixtures for tests of version control."""

from __future__ import annotations

from pathlib import Path

import pytest

from .repositories import KINDS, ColocatedRepository, GitRepository, JjRepository, Repository, find_jj


@pytest.fixture
def need_jj(monkeypatch: pytest.MonkeyPatch) -> None:
    """jj on PATH, with a user; skips where there is none."""
    find_jj(monkeypatch)


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
    started = GitRepository(tmp_path / "repo")
    started.begin()
    return started


@pytest.fixture
def jj_repository(need_jj: None, tmp_path: Path) -> JjRepository:
    """A jj repository with one commit on main."""
    started = JjRepository(tmp_path / "repo")
    started.begin()
    return started


@pytest.fixture
def colocated(need_jj: None, tmp_path: Path) -> ColocatedRepository:
    """A jj repository beside its git repository, with one commit on main."""
    started = ColocatedRepository(tmp_path / "repo")
    started.begin()
    return started
