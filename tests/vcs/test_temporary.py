"""Where git has an index of its own: in the project's scratch folder if that is ours, else among temporary files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from conftest import git
from rookery.vcs.temporary import temporary_folder


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def parent_of(near: Path) -> Path:
    with temporary_folder(str(near), "index") as folder:
        assert os.listdir(folder) == []
        assert os.stat(folder).st_mode & 0o777 == 0o700
        Path(folder, "index").touch()
    assert not os.path.lexists(folder)
    return Path(folder).parent


def test_it_lies_in_the_project_also_for_its_worktrees(project: Path, tmp_path: Path, outside: Path) -> None:
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "far"))
    git(project, "worktree", "add", "-q", "--detach", str(project / ".rookery/worktrees/bee"))
    scratch = project / ".rookery" / "scratch"
    for near in (project, tmp_path / "far", project / ".rookery/worktrees/bee"):
        assert parent_of(near) == scratch
    assert list(scratch.iterdir()) == []


def test_without_a_project_it_is_a_temporary_folder(repo: Path, outside: Path) -> None:
    assert parent_of(repo) == outside
    assert not (repo / ".rookery").exists()


@pytest.mark.parametrize("place", [".rookery", ".rookery/scratch"])
def test_a_link_is_not_followed(project: Path, tmp_path: Path, outside: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (project / ".rookery/scratch").mkdir()
    (project / place).rename(elsewhere)
    (project / place).symlink_to(elsewhere)
    assert parent_of(project) == outside


def test_what_raises_leaves_nothing(project: Path) -> None:
    with pytest.raises(KeyboardInterrupt), temporary_folder(str(project), "index"):
        raise KeyboardInterrupt
    assert list((project / ".rookery/scratch").iterdir()) == []
