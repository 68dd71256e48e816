"""Where a project is found: from below, from linked worktrees, from second workspaces."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import git
from rookery.base.errors import NotInitialised
from rookery.config.project import find_repository, find_root, make_state_folder


def make_project(root: Path) -> Path:
    (root / ".rookery").mkdir(exist_ok=True)
    (root / ".rookery" / "rookery.db").touch()
    return root


def test_a_project_is_found_from_below(repo: Path) -> None:
    make_project(repo)
    (repo / "a" / "b").mkdir(parents=True)
    assert find_root(str(repo / "a" / "b")) == str(repo)
    assert find_repository(str(repo / "a" / "b")) == str(repo)


def test_a_linked_worktree_leads_to_the_main_checkout(repo: Path, tmp_path: Path) -> None:
    make_project(repo)
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert find_root(str(tmp_path / "linked")) == str(repo)
    assert find_repository(str(tmp_path / "linked")) == str(repo)


def test_a_second_jj_workspace_leads_to_the_first(tmp_path: Path) -> None:
    (tmp_path / "first" / ".jj" / "repo").mkdir(parents=True)
    (tmp_path / "second" / ".jj").mkdir(parents=True)
    (tmp_path / "second" / ".jj" / "repo").write_text("../../first/.jj/repo")
    assert find_repository(str(tmp_path / "second")) == str(tmp_path / "first")


def test_a_submodule_belongs_to_the_repository_around_it(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repo), "other")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "other"), "sub")
    assert find_repository(str(repo / "sub")) == str(repo)


def test_a_repository_with_its_git_folder_elsewhere_is_one_of_its_own(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"), "work")
    assert find_repository(str(tmp_path / "work")) == str(tmp_path / "work")


def test_worktrees_of_a_bare_repository_share_its_folder(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "one"))
    assert find_repository(str(tmp_path / "one")) == str(tmp_path / "bare.git")


def test_worktrees_beside_a_hidden_bare_repository_share_the_folder_around_them(repo: Path, tmp_path: Path) -> None:
    around = tmp_path / "around"
    around.mkdir()
    git(around, "clone", "-q", "--bare", str(repo), ".bare")
    (around / ".git").write_text("gitdir: ./.bare\n")
    git(around, "worktree", "add", "-q", "one")
    assert find_repository(str(around / "one")) == find_repository(str(around)) == str(around)


def test_a_worktree_whose_repository_was_moved_still_finds_the_project_around_it(repo: Path, tmp_path: Path) -> None:
    make_project(repo)
    git(repo, "worktree", "add", "-q", ".rookery/worktrees/ada")
    moved = repo.rename(tmp_path / "moved")
    assert find_root(str(moved / ".rookery" / "worktrees" / "ada")) == str(moved)


def test_there_is_no_repository_outside_of_one(tmp_path: Path) -> None:
    assert find_repository(str(tmp_path)) is None
    with pytest.raises(NotInitialised):
        find_root(str(tmp_path))


def test_the_environment_goes_first_and_must_be_right(repo: Path, tmp_path: Path) -> None:
    make_project(repo)
    assert find_root(str(tmp_path), str(repo)) == str(repo)
    with pytest.raises(NotInitialised, match="ROOKERY_ROOT"):
        find_root(str(repo), str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_project_that_another_user_may_not_look_into_is_not_called_missing() -> None:
    code = """
import os, sys
from rookery.config.project import NotInitialised, UntrustedState, find_root
os.setuid(65534)
try:
    find_root(sys.argv[1])
except UntrustedState as error:
    print(error)
"""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        root = Path(name)
        (root / ".git").mkdir()
        (root / ".rookery").mkdir(mode=0o700)
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
    assert done.stdout == f"{name}/.rookery may not be looked into\n"


def test_a_folder_of_the_state_is_made_though_another_makes_it_too_and_no_project_that_is_gone(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make_state_folder, [str(tmp_path / "run")] * 64))
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        make_state_folder(str(tmp_path / "gone" / "run"))
