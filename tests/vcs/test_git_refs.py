"""Refs read from git's files are what git says, and where the files do not tell, git is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git
from rookery.vcs.git.refs import AskGit, RefFiles
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import HEADS


def listed(folder: Path, under: str) -> dict[str, str]:
    lines = git(folder, "for-each-ref", "--format=%(refname) %(objectname)", under).splitlines()
    return {name: commit for name, _, commit in (line.rpartition(" ") for line in lines)}


@pytest.fixture
def many(repo: Path) -> Path:
    """Branches that are packed, loose, both, and in folders."""
    for name in ("packed", "both", "in/packed", "gone", 'quo"te', "größe"):
        git(repo, "branch", name)
    git(repo, "pack-refs", "--all", "--prune")
    git(repo, "commit", "-q", "--allow-empty", "-m", "More")
    git(repo, "branch", "-f", "both", "main")
    git(repo, "branch", "in/loose")
    git(repo, "branch", "-D", "gone")
    git(repo, "tag", "-am", "tagged", "v1")
    return repo


def test_refs_are_what_git_says(many: Path) -> None:
    files = RefFiles(str(many / ".git"))
    for under in ("refs/heads/", "refs/tags/", "refs/heads/in/", "refs/none/"):
        assert files.under(under) == listed(many, under)
    for name, commit in listed(many, "refs/").items():
        assert files.read(name) == commit
    for name in ("refs/heads/gone", "refs/heads/in", "refs/heads/pack", "refs/heads/packed/more", "refs/heads/a b"):
        assert files.read(name) is None


def test_a_ref_that_is_being_written_and_files_of_others_do_not_count(many: Path) -> None:
    heads = many / ".git" / "refs" / "heads"
    for name in ("main.lock", ".hidden", "other.lock"):
        (heads / name).write_text("")
    assert RefFiles(str(many / ".git")).under("refs/heads/") == listed(many, "refs/heads/")


def test_what_the_files_do_not_tell_is_asked_of_git(many: Path) -> None:
    git(many, "symbolic-ref", "refs/heads/also", "refs/heads/both")
    files, store = RefFiles(str(many / ".git")), GitStore(str(many), 60)
    for name in ("refs/heads/also", "refs/heads/../heads/main", "refs/heads//main"):
        with pytest.raises(AskGit):
            files.read(name)
    with pytest.raises(AskGit):
        files.under("refs/heads/")
    assert store.ref("refs/heads/also") == store.ref("refs/heads/both") == git(many, "rev-parse", "main")
    assert store.refs(HEADS)["also"] == git(many, "rev-parse", "main")
    assert store.ref("refs/heads/../heads/main") is None
    assert store.ref("refs/heads/ma\0in") is None


def test_another_storage_is_left_to_git(many: Path) -> None:
    (many / ".git" / "reftable").mkdir()
    with pytest.raises(AskGit):
        RefFiles(str(many / ".git")).read("refs/heads/main")
    assert GitStore(str(many), 60).ref("refs/heads/main") == git(many, "rev-parse", "main")


def test_a_linked_worktree_and_long_ids_are_read_too(many: Path, tmp_path: Path) -> None:
    git(many, "worktree", "add", "-q", str(tmp_path / "linked"), "packed")
    assert GitStore(str(tmp_path / "linked"), 60).ref("refs/heads/main") == git(many, "rev-parse", "main")
    git(tmp_path, "init", "-q", "--object-format=sha256", "long")
    git(tmp_path / "long", "commit", "-q", "--allow-empty", "-m", "Begin")
    commit = GitStore(str(tmp_path / "long"), 60).ref("refs/heads/main")
    assert commit == git(tmp_path / "long", "rev-parse", "main")
    assert len(commit) == 64


def test_checkouts_are_what_git_says(many: Path, tmp_path: Path) -> None:
    git(many, "worktree", "add", "-q", str(tmp_path / "one"), "packed")
    git(many, "worktree", "add", "-q", "--detach", str(tmp_path / "two"))
    git(many, "worktree", "add", "-q", "--force", str(tmp_path / "three"), "packed")
    checkouts = RefFiles(str(many / ".git")).checkouts()
    assert checkouts == {
        str(many): "main",
        str(tmp_path / "one"): "packed",
        str(tmp_path / "two"): "",
        str(tmp_path / "three"): "packed",
    }
    listed_by_git = git(many, "worktree", "list", "--porcelain").split("\n\n")
    assert [entry.split("\n")[0].removeprefix("worktree ") for entry in listed_by_git] == list(checkouts)


@pytest.mark.parametrize("setting", ["core.bare=true", "core.worktree=/elsewhere", "include.path=more"])
def test_checkouts_of_an_unusual_repository_are_left_to_git(repo: Path, setting: str) -> None:
    assert RefFiles(str(repo / ".git")).checkouts() == {str(repo): "main"}
    git(repo, "config", *setting.split("="))
    with pytest.raises(AskGit):
        RefFiles(str(repo / ".git")).checkouts()


def test_a_symbolic_ref_leads_where_git_says(many: Path) -> None:
    store = GitStore(str(many), 60)
    assert store.symbolic("refs/remotes/origin/HEAD") is None
    git(many, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    git(many, "pack-refs", "--all", "--prune")
    assert store.symbolic("refs/remotes/origin/HEAD") == "refs/remotes/origin/trunk"
    git(many, "branch", "plain")
    assert store.symbolic("refs/heads/plain") is None
