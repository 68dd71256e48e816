"""Which git commands are caged, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.vcs import cage
from rookery.vcs.detect import detect
from rookery.vcs.git.repository import GitStore
from support import touch_database

GIT = ["git", "--no-pager"]


@pytest.fixture
def worktree(repo: Path) -> Path:
    """A folder in the place of an agent's worktree, with a cage that says that it was used."""
    folder = repo / ".rookery" / "worktrees" / "bee"
    (folder / "deep").mkdir(parents=True)
    touch_database(repo)
    words = ["sh", "-c", 'echo caged "$@"', "cage"]
    cage.keep(str(folder), words, str(repo / ".git"))
    return folder


def cage_of(folder: Path) -> cage.Cage:
    it = cage.find(str(folder))
    assert it is not None
    return it


def test_a_cage_holds_for_the_worktree_and_all_folders_in_it(repo: Path, worktree: Path) -> None:
    assert cage_of(worktree) == cage_of(worktree / "deep")
    for other in (repo, repo / ".rookery", worktree.parent, worktree.parent / "wasp", Path("/")):
        assert cage.find(str(other)) is None


@pytest.mark.parametrize(
    "args", [("status",), ("-c", "a.b=c", "commit"), ("add", "--all"), ("diff",), ("commit-tree", "x"), ()]
)
def test_what_looks_at_files_or_writes_is_caged(worktree: Path, args: tuple[str, ...]) -> None:
    argv = cage_of(worktree).wrap(GIT, str(worktree), args, {})
    assert argv[:4] == ["sh", "-c", 'echo caged "$@"', "cage"]
    assert argv[4:9] == ["--chdir", str(worktree), "--", *GIT]
    assert argv[-len(args) :] == list(args) or not args


@pytest.mark.parametrize(
    "args", [("rev-parse", "HEAD"), ("-c", "core.hooksPath=/dev/null", "cat-file", "--batch"), ("config", "x")]
)
def test_what_reads_refs_and_objects_is_not(worktree: Path, args: tuple[str, ...]) -> None:
    assert cage_of(worktree).wrap(GIT, str(worktree), args, {}) == [*GIT, *args]
    # A repository inside it has settings of its own, and there everything is.
    assert cage_of(worktree).wrap(GIT, str(worktree / "deep"), args, {})[0] == "sh"


def test_a_ref_is_written_without_the_worktrees_own_folder(repo: Path, worktree: Path) -> None:
    argv = cage_of(worktree).wrap(GIT, str(worktree), ("update-ref", "refs/x", "y"), {})
    assert argv == [*GIT, f"--git-dir={repo / '.git'}", "update-ref", "refs/x", "y"]


def test_an_index_elsewhere_has_room(worktree: Path) -> None:
    argv = cage_of(worktree).wrap(GIT, str(worktree), ("add",), {"GIT_INDEX_FILE": "/tmp/x/index"})
    assert argv[4:7] == ["--bind", "/tmp/x", "/tmp/x"]


def test_the_store_uses_it(repo: Path, worktree: Path) -> None:
    assert GitStore(str(worktree), 10).read("status").startswith("caged --chdir")
    assert "caged" not in GitStore(str(repo), 10).read("status")


def test_another_version_control_is_not_looked_for_in_there(worktree: Path) -> None:
    (worktree / ".git").write_text("gitdir: nowhere\n")
    (worktree / ".jj").mkdir()
    assert detect(str(worktree)) == ("git", str(worktree))
    cage.forget(str(worktree))
    assert detect(str(worktree)) == ("jj", str(worktree))


def test_it_is_forgotten_with_the_worktree(worktree: Path) -> None:
    cage.forget(str(worktree / "deep"))
    assert cage.find(str(worktree)) is not None
    cage.forget(str(worktree))
    cage.forget(str(worktree))
    assert cage.find(str(worktree)) is None


def test_a_cage_that_cannot_be_read_lets_no_git_run(repo: Path, worktree: Path) -> None:
    """A machine that goes down may leave an empty file."""
    (path,) = (repo / ".rookery/run/cages").iterdir()
    path.write_text("")
    with pytest.raises(ValueError, match="Expecting value"):
        cage.find(str(worktree))
