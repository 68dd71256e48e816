"""Which repository a folder belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.base.errors import NoRepository
from rookery.config.model import VcsConfig
from rookery.vcs.detect import detect, open_vcs


def make(folder: Path, *marks: str) -> str:
    for mark in marks:
        (folder / mark).mkdir(parents=True)
    return str(folder)


def test_the_nearest_folder_above_wins(tmp_path: Path) -> None:
    outer = make(tmp_path / "outer", ".git")
    inner = make(tmp_path / "outer" / "x" / "inner", ".git")
    (tmp_path / "outer" / "x" / "inner" / "deep").mkdir()
    assert detect(inner + "/deep") == ("git", inner)
    assert detect(outer + "/x") == ("git", outer)


def test_jj_goes_before_git_in_one_folder_only(tmp_path: Path) -> None:
    both = make(tmp_path / "both", ".jj", ".git")
    assert detect(both) == ("jj", both)
    git = make(tmp_path / "both" / "git", ".git")
    assert detect(git) == ("git", git)


def test_a_git_file_counts(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert detect(str(tmp_path)) == ("git", str(tmp_path))


def test_a_symlink_leads_to_the_real_folder(tmp_path: Path) -> None:
    real = make(tmp_path / "real", ".git")
    (tmp_path / "link").symlink_to(real)
    assert detect(str(tmp_path / "link")) == ("git", real)


def test_inside_the_git_folder_the_checkout_is_found(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", ".git/objects", ".git/refs", ".git/hooks")
    (tmp_path / "repo" / ".git" / "HEAD").touch()
    assert detect(root + "/.git/hooks") == ("git", root)


def test_a_bare_repository_is_not_taken_for_the_one_around_it(tmp_path: Path) -> None:
    make(tmp_path, ".git")
    bare = make(tmp_path / "bare.git", "objects", "refs")
    (tmp_path / "bare.git" / "HEAD").touch()
    assert detect(bare) is None


def test_a_checkout_may_hold_what_a_bare_repository_holds(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", ".git", "objects", "refs")
    (tmp_path / "repo" / "HEAD").touch()
    assert detect(root) == ("git", root)


def test_nothing_is_found_outside(tmp_path: Path) -> None:
    assert detect(str(tmp_path)) is None
    with pytest.raises(NoRepository) as caught:
        open_vcs(str(tmp_path), VcsConfig())
    assert "git init" in caught.value.hint


def test_the_setting_chooses_the_backend_and_its_timeout(tmp_path: Path) -> None:
    both = make(tmp_path / "both", ".jj", ".git")
    assert open_vcs(both, VcsConfig()).kind == "jj"
    assert open_vcs(both, VcsConfig(backend="git")).kind == "git"
    git = make(tmp_path / "git", ".git")
    with pytest.raises(NoRepository, match="jj") as caught:
        open_vcs(git, VcsConfig(backend="jj"))
    assert "jj git init" in caught.value.hint
