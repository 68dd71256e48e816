"""What a killed `git worktree add` leaves, at every point at which it can be killed: nothing of it stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rookery.base.errors import InvalidState
from rookery.processes import proctable
from rookery.vcs.git import processes as git_processes
from rookery.vcs.git import unfinished
from rookery.vcs.git.checkout import Git

from .repositories import TIMEOUT, GitRepository, run

# Everything that git makes, in its order: `own` is its registration, `place` the worktree. A file is there before it
# holds anything, which is a step of its own; None is a folder.
_STEPS: tuple[tuple[str, str | None], ...] = (
    ("own", None),
    ("own/locked", ""),
    ("own/locked", "initializing\n"),
    ("place", None),
    ("own/gitdir", ""),
    ("own/gitdir", "{place}/.git\n"),
    ("place/.git", ""),
    ("place/.git", "gitdir: {own}\n"),
    ("own/HEAD", ""),
    ("own/HEAD", "0" * 40 + "\n"),
    ("own/commondir", ""),
    ("own/commondir", "../..\n"),
    ("own/HEAD.lock", ""),
    ("own/HEAD", "ref: refs/heads/work\n"),
    ("own/index.lock", ""),
    ("place/README.md", "hel"),
    ("place/dir", None),
    ("place/dir/file", "deep\n"),
)
_BEFORE_GITDIR = 5


class Half:
    """A repository with a branch, and a worktree on it that is made by hand until git is killed."""

    def __init__(self, repository: GitRepository) -> None:
        repository.write(".rookery/.gitignore", "*\n")
        repository.write("dir/file", "deep\n")
        repository.vcs().commit("More")
        repository.vcs().create_branch("work", "main")
        self.root = repository.path
        self.place = self.root / ".rookery" / "worktrees" / "bee"
        self.own = self.root / ".git" / "worktrees" / "bee"
        self.place.parent.mkdir()

    def make(self, count: int) -> None:
        """The first steps of git."""
        self.own.parent.mkdir(exist_ok=True)
        for name, text in _STEPS[:count]:
            path = self.own.parent / name.replace("own", "bee", 1)
            if name.startswith("place"):
                path = self.place.parent / name.replace("place", "bee", 1)
            if text is None:
                path.mkdir()
            else:
                path.write_text(text.format(own=self.own, place=self.place))

    def discard(self, *, is_new: bool = False) -> None:
        Git(str(self.root), TIMEOUT).discard_unfinished(str(self.place), "work", is_new=is_new)

    def assert_gone(self) -> None:
        assert not self.own.exists()
        assert list(self.place.parent.iterdir()) == []
        assert run(self.root, "git", "fsck") == ""
        assert run(self.root, "git", "worktree", "list").count("\n") == 0


@pytest.fixture
def half(git_repository: GitRepository) -> Half:
    return Half(git_repository)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("count", range(1, len(_STEPS) + 1))
def test_killed_at_any_step_nothing_is_left(half: Half, count: int) -> None:
    half.make(count)
    half.discard()
    half.assert_gone()
    half.discard()
    Git(str(half.root), TIMEOUT).add_checkout(str(half.place), "work")
    assert run(half.place, "git", "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize(
    "gone", ["locked", "locked HEAD", "locked index", "gitdir", "gitdir locked", "*", "* .git", "gitdir HEAD .git"]
)
def test_killed_while_git_removes_it_itself_nothing_is_left(half: Half, gone: str) -> None:
    half.make(len(_STEPS))
    (half.own / "index.lock").rename(half.own / "index")
    for name in gone.split():
        if name == "*":
            run(half.root, "rm", "-r", str(half.own))
        else:
            (half.place if name == ".git" else half.own).joinpath(name).unlink()
    half.discard(is_new=True)
    if gone == "locked":  # that is how git finishes one, too
        assert (half.place / "README.md").exists()
        run(half.root, "git", "worktree", "remove", "--force", str(half.place))
    half.assert_gone()


def test_one_that_is_finished_stays(half: Half) -> None:
    vcs = Git(str(half.root), TIMEOUT)
    vcs.add_checkout(str(half.place), "work")
    half.discard()
    assert run(half.place, "git", "status", "--porcelain") == ""
    run(half.root, "git", "worktree", "lock", "--reason", "mine", str(half.place))
    half.discard(is_new=True)
    assert (half.place / "README.md").exists()
    assert vcs.lock_state(str(half.place)) == "mine"


@pytest.mark.parametrize("name", ["new", "dir/new", "bee -> /", "README.md/"])
def test_files_of_the_user_stay_with_all_the_rest(half: Half, name: str) -> None:
    half.make(len(_STEPS))
    is_new = name == "new"
    if name == "bee -> /":
        (half.place / "bee").symlink_to("/")
    elif name == "README.md/":
        (half.place / "README.md").unlink()
        (half.place / "README.md").mkdir()
        (half.place / "README.md" / "mine").touch()
    else:
        (half.place / name).write_text("mine\n")
    with pytest.raises(InvalidState, match="which no checkout wrote"):
        half.discard(is_new=is_new)
    assert half.own.is_dir()
    assert (half.place / "dir" / "file").exists()


@pytest.mark.parametrize("content", [None, "file", ".git"])
def test_a_folder_that_git_did_not_make_stays(half: Half, content: str | None) -> None:
    """Without a registration only an empty folder, or a pointer into this repository, can be git's."""
    half.place.mkdir()
    if content is not None:
        (half.place / content).write_text("gitdir: /elsewhere/.git/worktrees/bee\n")
    half.discard()
    assert half.place.exists() is (content is not None)


def test_a_pointer_to_a_registration_that_is_gone_goes(half: Half) -> None:
    half.make(8)
    run(half.root, "rm", "-r", str(half.own))
    half.discard()
    half.assert_gone()


def test_worktrees_of_the_user_stay_also_unfinished_ones(half: Half, tmp_path: Path) -> None:
    """Same names, other places: a finished one, one that a git is at, one that was killed."""
    run(half.root, "git", "worktree", "add", "-q", "--detach", str(tmp_path / "bee"))
    assert half.own.is_dir()
    other = half.own.with_name("bee1")
    other.mkdir()
    (other / "locked").write_text("initializing\n")
    (other / "gitdir").write_text(f"{tmp_path}/else/bee/.git\n")
    half.discard()
    assert half.own.is_dir()
    assert (other / "gitdir").exists()
    assert (tmp_path / "bee" / "README.md").exists()


def test_a_registration_that_a_living_git_may_be_making_stays(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration does not name its folder yet."""
    half.make(_BEFORE_GITDIR)
    me = proctable.read_one(os.getpid())
    assert me is not None
    alive = git_processes.Process(me.identity, ("git", "worktree", "add", "../bee"))
    monkeypatch.setattr(git_processes, "at_work", lambda _common, _user: [alive])
    monkeypatch.setattr(unfinished, "_PATIENCE", 0.1)
    half.discard()
    assert half.own.is_dir()
    monkeypatch.undo()
    half.discard()
    half.assert_gone()


def test_a_link_is_refused(half: Half, tmp_path: Path) -> None:
    half.make(len(_STEPS))
    half.place.rename(tmp_path / "moved")
    half.place.symlink_to(tmp_path / "moved")
    with pytest.raises(InvalidState, match="is a link"):
        half.discard()
    assert (tmp_path / "moved" / "README.md").exists()
