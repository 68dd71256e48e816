"""Every turn's end is kept, listed and can be gone back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from places import Agent, Place, make_place
from rookery.base.errors import InvalidState, NotFound
from rookery.sessions.model import NoSuchAgent
from rookery.vcs.model import DirtyCheckout
from rookery.worktrees import snapshots
from rookery.worktrees.cleaning import Cleaner
from rookery.worktrees.snapshots import Restored
from vcs.repositories import KINDS, run


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place(request.param, tmp_path, monkeypatch)


@pytest.fixture
def git_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def take(agent: Agent, turn: int) -> str:
    agent.add_turn(turn)
    return snapshots.take(agent.place.context(), agent.session, turn)


def restore(place: Place, name: str, turn: int, *, force: bool = False) -> Restored:
    ctx = place.context()
    try:
        return snapshots.restore_snapshot(ctx, name, turn, force=force)
    finally:
        ctx.close()


def test_turns_are_listed_with_what_each_changed(place: Place) -> None:
    ann = place.add("ann")
    ann.put("a")
    first = take(ann, 1)
    take(ann, 2)
    ann.vcs().commit("Commit a")
    ann.put("b")
    ann.put("README.md", "changed\n")
    take(ann, 10)
    ctx = place.context()
    turns = snapshots.list_snapshots(ctx, "ann")
    ctx.close()
    assert [(turn.turn, set(turn.files)) for turn in turns] == [(1, {"a"}), (2, set()), (10, {"README.md", "b"})]
    assert turns[0].ref == f"refs/rookery/{first}"
    assert turns[0].commit == place.vcs().saved_refs()[first]
    assert all(turn.at for turn in turns)


def test_the_end_of_a_turn_is_taken_again_after_a_kill(git_place: Place) -> None:
    ann = git_place.add("ann")
    ann.put("a", "1\n")
    name = take(ann, 1)
    ann.put("a", "2\n")
    snapshots.take(git_place.context(), ann.session, 1)
    assert git_place.repository.content(git_place.vcs().saved_refs()[name], "a") == "2"


def test_a_worktree_that_is_gone_is_not_mistaken_for_the_main_checkout(git_place: Place) -> None:
    ann = git_place.add("ann")
    (ann.path / ".git").unlink()
    with pytest.raises(InvalidState, match="no worktree"):
        take(ann, 1)


def test_ignored_files_are_taken_along_where_the_project_says_so(git_place: Place) -> None:
    git_place.repository.write(".gitignore", "*.log\n")
    git_place.base = git_place.vcs().commit("Ignore logs")
    ann = git_place.add("ann")
    ann.put("x.log")
    without = take(ann, 1)
    git_place.flags = {"worktrees.snapshot_ignored": "*.log"}
    taken_along = take(ann, 2)
    saved = git_place.vcs().saved_refs()
    assert "x.log" not in git_place.repository.tree(saved[without])
    assert "x.log" in git_place.repository.tree(saved[taken_along])


def test_a_turn_is_restored_and_what_was_there_is_kept(place: Place) -> None:
    ann = place.add("ann", state="waiting")
    ann.put("a", "1\n")
    take(ann, 1)
    ann.put("a", "2\n")
    ann.put("b", "2\n")
    take(ann, 2)
    with pytest.raises(DirtyCheckout):
        restore(place, "ann", 1)
    restored = restore(place, "ann", 1, force=True)
    assert (ann.path / "a").read_text() == "1\n"
    assert not (ann.path / "b").exists()
    assert restored.rescue is not None
    kept = place.vcs().saved_refs()[restored.rescue.removeprefix("refs/rookery/")]
    assert place.repository.content(kept, "b") == "2"
    restore(place, "ann", 2, force=True)
    assert (ann.path / "b").read_text() == "2\n"


def test_a_worktree_that_was_cleaned_is_made_again(place: Place) -> None:
    ann = place.add("ann")
    ann.put("done")
    tip = ann.vcs().commit("Work")
    ann.put("a", "1\n")
    take(ann, 1)
    ctx = place.context()
    Cleaner(ctx).clean()
    ctx.close()
    assert not ann.path.exists()
    restored = restore(place, "ann", 1)
    assert restored.was_recreated
    assert (ann.path / "a").read_text() == "1\n"
    assert ann.vcs().current_branch() == ann.branch
    assert ann.vcs().current_commit() == tip


def test_a_branch_that_is_gone_is_made_again(git_place: Place) -> None:
    ann = git_place.add("ann")
    ann.put("a", "1\n")
    take(ann, 1)
    (ann.path / "a").unlink()
    ctx = git_place.context()
    assert Cleaner(ctx).clean()[0].branch_deleted
    ctx.close()
    restore(git_place, "ann", 1)
    assert (ann.path / "a").read_text() == "1\n"


@pytest.mark.parametrize("state", ["booting", "working"])
def test_an_agent_at_work_is_not_disturbed(git_place: Place, state: str) -> None:
    ann = git_place.add("ann", state=state)
    ann.put("a")
    take(ann, 1)
    with pytest.raises(InvalidState, match=state):
        restore(git_place, "ann", 1, force=True)


def test_what_is_not_there_is_reported(git_place: Place) -> None:
    git_place.add("ann")
    with pytest.raises(NotFound, match="turn 7"):
        restore(git_place, "ann", 7)
    with pytest.raises(NoSuchAgent):
        restore(git_place, "bob", 1)
    ctx = git_place.context()
    with pytest.raises(NoSuchAgent):
        snapshots.list_snapshots(ctx, "bob")
    ctx.close()


@pytest.mark.slow
def test_the_command_line_shows_worktrees_and_snapshots(
    git_place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rookery.cli.main import main

    monkeypatch.chdir(git_place.root)
    ann = git_place.add("ann")
    ann.put("a")
    take(ann, 1)
    for words, expected in (
        (["worktree", "list", "--size"], "rook/ann/task"),
        (["worktree", "snapshots", "ann"], "a"),
        (["worktree", "clean", "--dry-run"], "removable"),
        (["worktree", "restore", "ann", "--turn", "1", "--force"], "turn 1"),
        (["worktree", "clean", "ann"], "git branch rescued-ann refs/rookery/rescue/ann/"),
        (["worktree", "clean"], "No worktrees"),
        (["worktree", "clean", "--json"], '"data"'),
    ):
        assert main(words) == 0, words
        assert expected in capsys.readouterr().out
    run(git_place.root, "git", "fsck", "--no-dangling")
