"""Worktrees of agents are made, checked, inspected and removed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from places import Place, make_place, run_killed
from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.config.model import VcsConfig
from rookery.ops.context import Context
from rookery.sessions.model import NameTaken, Settings
from rookery.worktrees import service as worktrees
from rookery.worktrees.service import WorktreeState, WrongWorktree
from selection import Sample
from support import touch_database
from vcs.repositories import KINDS, run

BRANCH = "rook/ann/task"


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place(request.param, tmp_path, monkeypatch)


@pytest.fixture
def git_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def create(place: Place) -> Path:
    session = place.session("ann")
    worktrees.create(place.context(), session)
    return Path(session.worktree)


def undo(place: Place) -> str:
    return worktrees.undo(place.context(), place.session("ann").replace(settings=Settings(is_new=True)))


def look(place: Place, path: Path) -> WorktreeState:
    ctx = place.context()
    unmerged = worktrees.count_unmerged(worktrees.open_repository(ctx), [BRANCH], "main")
    return worktrees.inspect(ctx, str(path), BRANCH, unmerged=unmerged[BRANCH])


def test_a_worktree_is_made_and_the_main_checkout_stays_clean(place: Place) -> None:
    path = create(place)
    assert path == place.root / ".rookery" / "worktrees" / "ann"
    assert place.vcs().branches() == {"main": place.base, BRANCH: place.base}
    assert place.repository.vcs(path).current_branch() == BRANCH
    assert (path / "README.md").read_text() == "hello\n"
    assert place.vcs().status().is_clean


def test_an_untouched_one_is_found_again(place: Place) -> None:
    assert create(place) == create(place)


_CREATE = """
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.worktrees import service as worktrees
ctx = Context()
worktrees.create(ctx, store.latest(ctx.db, 'ann'))
"""


def test_killed_at_any_step_it_is_finished_by_the_next(place: Place, sample: Sample) -> None:
    place.insert(place.session("ann"))
    for step in sample(range(1, 4), 2):
        status = run_killed(_CREATE, step, place.root)
        path = create(place)
        assert place.repository.vcs(path).status().is_clean
        assert place.repository.vcs(path).current_branch() == BRANCH
        assert undo(place) == ""
        assert status == (0 if step > 2 else -signal.SIGKILL)


def test_killed_in_the_middle_of_the_checkout_it_is_finished(git_place: Place) -> None:
    """The filter of one file kills git while it writes the files."""
    place, root = git_place, git_place.root
    for name in ("a.txt", "m.trap", "z.txt"):
        place.repository.write(name, f"{name}\n")
    place.repository.write(".gitattributes", "*.trap filter=trap\n")
    place.base = place.vcs().commit("More")
    run(root, "git", "config", "filter.trap.smudge", "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID")
    with pytest.raises(Refused):
        create(place)
    path = root / ".rookery" / "worktrees" / "ann"
    assert (path / ".git").exists()
    assert not (path / "z.txt").exists()
    run(root, "git", "config", "filter.trap.smudge", "cat")
    assert create(place) == path
    assert {entry.name for entry in path.iterdir()} >= {"a.txt", "m.trap", "z.txt"}
    assert place.repository.vcs(path).status().is_clean
    assert place.vcs().lock_state(str(path)) is None
    assert undo(place) == ""


@pytest.mark.parametrize("leftover", ["registration", "empty folder", "pointer", "orphaned pointer"])
def test_what_a_killed_git_leaves_is_cleared(git_place: Place, leftover: str) -> None:
    place, path = git_place, create(git_place)
    registration = place.root / ".git" / "worktrees" / "ann"
    (registration / "locked").write_text("initializing")
    pointer = (path / ".git").read_text()
    for entry in path.iterdir():
        entry.unlink()
    if leftover == "registration":
        path.rmdir()
    if "pointer" in leftover:
        (path / ".git").write_text(pointer)
        (registration / "HEAD").unlink()
    if leftover == "orphaned pointer":
        run(place.root, "rm", "-r", str(registration))
    assert create(place) == path
    assert place.repository.vcs(path).status().is_clean


def test_foreign_content_is_refused_and_kept(place: Place) -> None:
    path = place.root / ".rookery" / "worktrees" / "ann"
    path.mkdir(parents=True)
    (path / "file").write_text("precious")
    with pytest.raises(InvalidState):
        create(place)
    assert [entry.name for entry in path.iterdir()] == ["file"]


def test_one_that_was_worked_in_is_not_taken_for_a_fresh_one(place: Place) -> None:
    path = create(place)
    (path / "new").write_text("precious")
    with pytest.raises(WrongWorktree, match="1 change"):
        create(place)
    assert (path / "new").exists()


def test_a_branch_that_is_elsewhere_is_refused(place: Place) -> None:
    place.repository.write("a")
    later = place.vcs().commit("Later")
    place.vcs().create_branch(BRANCH, later)
    with pytest.raises(NameTaken):
        create(place)
    assert not (place.root / ".rookery" / "worktrees" / "ann").exists()


def test_a_bad_name_makes_no_folder(git_place: Place) -> None:
    for name in ("../out", "a/b", "", "human"):
        with pytest.raises((InvalidInput, IndexError)):
            worktrees.create(git_place.context(), git_place.session("ann").replace(agent=name))


def test_a_folder_of_worktrees_that_leads_out_is_refused(git_place: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (git_place.root / ".rookery" / "worktrees").symlink_to(tmp_path / "out")
    with pytest.raises(Refused, match="leads out"):
        create(git_place)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_a_checkout_on_the_wrong_branch_or_commit_is_loud(place: Place) -> None:
    path = create(place)
    with pytest.raises(WrongWorktree, match="not on other"):
        worktrees.check(str(path), VcsConfig(), branch="other")
    (path / "a").write_text("a")
    place.repository.vcs(path).commit("Move on")
    with pytest.raises(WrongWorktree, match="not at"):
        worktrees.check(str(path), VcsConfig(), branch=BRANCH, commit=place.base)
    (place.root / ".rookery" / "empty").mkdir()
    with pytest.raises(WrongWorktree, match="belongs to"):
        worktrees.check(str(place.root / ".rookery" / "empty"), VcsConfig(), branch="main")


def test_a_bare_repository_has_worktrees_too(git_place: Place, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    run(tmp_path, "git", "clone", "-q", "--bare", str(git_place.root), str(bare))
    touch_database(bare)
    path = bare / ".rookery" / "worktrees" / "ann"
    usual, session = git_place.context(), git_place.session("ann").replace(worktree=str(path))
    ctx = Context.at(str(bare), usual.db, usual.config)
    worktrees.create(ctx, session)
    worktrees.write_instructions(VcsConfig(), str(path), "AGENTS.md", "ours\n")
    assert run(path, "git", "status", "--porcelain") == ""
    assert run(bare, "git", "rev-parse", "--is-bare-repository") == "true"
    assert worktrees.undo(ctx, session) == ""
    usual.close()


def test_undo_takes_back_an_unused_one(place: Place) -> None:
    path = create(place)
    worktrees.write_instructions(VcsConfig(), str(path), ".claude/CLAUDE.md", "ours\n")
    assert undo(place) == ""
    assert not path.exists()
    assert place.vcs().branches() == {"main": place.base}
    assert undo(place) == ""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["changed", "untracked", "committed", "ignored", "link"])
def test_undo_keeps_what_was_worked_in(place: Place, what: str, tmp_path: Path) -> None:
    place.repository.write(".gitignore", "*.log\n")
    place.base = place.vcs().commit("Ignore logs")
    path = create(place)
    name = {"changed": "README.md", "ignored": "x.log"}.get(what, "new")
    (path / name).write_text("precious\n")
    if what == "committed":
        place.repository.vcs(path).commit("Work")
    if what == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    assert "kept" in undo(place)
    assert (path / name).read_text() == "precious\n"
    assert BRANCH in place.vcs().branches()


@pytest.mark.slow
def test_a_worktree_is_seen_as_it_is(place: Place) -> None:
    place.repository.write(".gitignore", "*.log\n")
    place.base = place.vcs().commit("Ignore logs")
    path = create(place)
    clean = look(place, path)
    assert clean.is_clean
    assert clean.is_there
    assert (clean.unmerged, clean.ignored, clean.branch) == (0, (), BRANCH)
    (path / "done").write_text("x")
    place.repository.vcs(path).commit("Work")
    worktrees.write_instructions(VcsConfig(), str(path), "AGENTS.md", "ours\n")
    (path / "README.md").write_text("changed")
    (path / "new").write_text("x")
    (path / "x.log").write_text("x")
    state = look(place, path)
    assert set(state.uncommitted + state.untracked) == {"README.md", "new"}
    assert (state.ignored, state.unmerged, state.step) == (("x.log",), 1, None)
    assert not state.is_other_branch


def test_what_is_odd_about_a_worktree_is_seen(git_place: Place, tmp_path: Path) -> None:
    place, path = git_place, create(git_place)
    run(path, "git", "switch", "-q", "--detach")
    run(place.root, "git", "worktree", "lock", "--reason", "mine", str(path))
    state = look(place, path)
    assert (state.branch, state.is_other_branch, state.lock) == (None, True, "mine")
    run(place.root, "git", "worktree", "unlock", str(path))
    run(path, "git", "switch", "-q", BRANCH)
    for side, text in (("left", "a\n"), ("right", "b\n")):
        run(path, "git", "switch", "-qc", side, place.base)
        (path / "README.md").write_text(text)
        run(path, "git", "commit", "-qam", side)
    run(path, "git", "merge", "left", check=False)
    assert look(place, path).step == "merge"
    run(path, "git", "merge", "--abort")
    run(path, "git", "rebase", "left", check=False)
    assert look(place, path).step == "rebase"
    path.rename(tmp_path / "away")
    assert look(place, path).is_missing
    path.mkdir()
    assert look(place, path).is_broken
    path.rmdir()
    path.symlink_to(tmp_path / "away")
    assert look(place, path).is_symlink


def test_generated_instructions_hide_a_tracked_file(git_place: Place) -> None:
    place = git_place
    place.repository.write("AGENTS.md", "theirs\n")
    place.base = place.vcs().commit("Instructions of their own")
    path = create(place)
    worktrees.write_instructions(VcsConfig(), str(path), "AGENTS.md", "ours\n")
    (path / "work").write_text("x")
    commit = place.repository.vcs(path).commit("Work")
    assert place.repository.content(commit, "AGENTS.md") == "theirs"
    assert (path / "AGENTS.md").read_text() == "ours\n"
    assert place.repository.vcs(path).status().is_clean


def test_instructions_are_not_written_through_a_link(git_place: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (git_place.root / ".claude").symlink_to(tmp_path / "out")
    git_place.base = git_place.vcs().commit("A link")
    path = create(git_place)
    with pytest.raises(Refused, match="leads out"):
        worktrees.write_instructions(VcsConfig(), str(path), ".claude/CLAUDE.md", "ours\n")
    assert list((tmp_path / "out").iterdir()) == []
