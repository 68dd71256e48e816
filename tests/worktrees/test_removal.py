"""The loop or the next cleaning finishes a killed cleaning, and publishes one event, after the removal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from places import Agent, Place, make_place, run_killed
from rookery.events.store import read
from rookery.flows import loop
from rookery.worktrees.cleaning import Cleaner
from selection import Sample
from support import child_environ
from vcs.repositories import KINDS, run

pytestmark = pytest.mark.slow

_CLEAN = """
from rookery.worktrees.cleaning import Cleaner
from rookery.ops.context import Context
Cleaner(Context()).clean()
"""
_STEPS = ["rescued", "cleaning noted", "put aside", "removed", "branch settled", "told"]


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place(request.param, tmp_path, monkeypatch)


@pytest.fixture
def git_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def clean(place: Place) -> dict[str, str]:
    ctx = place.context()
    try:
        return {cleaned.agent: cleaned.verdict for cleaned in Cleaner(ctx).clean()}
    finally:
        ctx.close()


def killed(place: Place, step: str) -> None:
    """A cleaning that is killed right after a step."""
    env = child_environ({"ROOKERY_TEST_KILL": step})
    done = subprocess.run([sys.executable, "-c", _CLEAN], cwd=place.root, env=env, timeout=120)
    assert done.returncode == -signal.SIGKILL


def look(place: Place) -> list[str]:
    """Let the loop do all that is due; return what went wrong."""
    ctx, problems = place.context(), list[str]()
    loop.run_once(ctx, problems.append)
    ctx.close()
    return problems


def cleaned_agents(place: Place) -> list[str]:
    ctx = place.context()
    agents = [event.subject for event in read(ctx.db, kinds=("worktree",)) if event.type == "worktree.cleaned"]
    ctx.close()
    return agents


def in_work(place: Place) -> int:
    ctx = place.context()
    count = ctx.db.value("SELECT count(*) FROM cleanings")
    ctx.close()
    return int(count)


def files(place: Place) -> list[str]:
    return sorted(path.name for path in (place.root / ".rookery" / "worktrees").iterdir())


def used(place: Place, name: str) -> Agent:
    """An agent with work that is not committed."""
    agent = place.add(name)
    agent.put("new", f"of {name}\n")
    return agent


def test_killed_anywhere_the_next_cleaning_tells_of_it_once(place: Place, sample: Sample) -> None:
    """Steps are counted, so that new ones are tested too."""
    for step in sample(range(1, 7), 3):
        ann = used(place, f"ann{step}")
        run_killed(_CLEAN, step, place.root)
        clean(place)
        assert cleaned_agents(place).count(ann.name) == 1
        assert files(place) == []
        assert str(ann.path) not in place.vcs().checkouts()
        assert clean(place) == {}
        assert cleaned_agents(place).count(ann.name) == 1
    assert in_work(place) == 0


@pytest.mark.parametrize("step", _STEPS)
def test_the_loop_finishes_what_was_begun_and_nothing_else(git_place: Place, step: str) -> None:
    ann = used(git_place, "ann")
    run(ann.path, "git", "commit", "-q", "--allow-empty", "-m", "Landed")
    run(git_place.root, "git", "merge", "-q", "--ff-only", ann.branch)
    killed(git_place, step)
    assert ann.path.exists() or cleaned_agents(git_place) == (["ann"] if step == "told" else [])
    assert look(git_place) == []
    if step in ("rescued", "cleaning noted"):  # nothing was taken away yet
        assert (ann.path / "new").read_text() == "of ann\n"
        assert cleaned_agents(git_place) == []
        assert clean(git_place) == {"ann": "removed"}
    assert (cleaned_agents(git_place), files(git_place), in_work(git_place)) == (["ann"], [], 0)
    assert ann.branch not in git_place.vcs().branches()
    (rescue,) = git_place.vcs().saved_refs("rescue/ann/").values()
    assert git_place.repository.content(rescue, "new") == "of ann"


@pytest.mark.parametrize("step", ["put aside", "removed"])
def test_a_new_worktree_in_the_same_place_is_left_alone(git_place: Place, step: str) -> None:
    used(git_place, "ann")
    killed(git_place, step)
    again = git_place.add("ann", state="waiting")
    again.put("fresh", "fresh\n")
    assert look(git_place) == []
    assert (cleaned_agents(git_place), files(git_place), in_work(git_place)) == (["ann"], ["ann"], 0)
    assert (again.path / "fresh").read_text() == "fresh\n"
    assert again.vcs().current_branch() == again.branch


def test_what_was_put_into_it_after_the_kill_is_saved_too(git_place: Place) -> None:
    ann = used(git_place, "ann")
    killed(git_place, "cleaning noted")
    ann.put("late", "late\n")
    assert look(git_place) == []
    assert clean(git_place) == {"ann": "removed"}
    trees = [git_place.repository.tree(ref) for ref in git_place.vcs().saved_refs("rescue/ann/").values()]
    assert any("late" in tree for tree in trees)
    assert cleaned_agents(git_place) == ["ann"]


def test_a_branch_that_lands_after_its_worktree_was_cleaned_goes_without_an_event(git_place: Place) -> None:
    ann = git_place.add("ann")
    ann.put("done")
    ann.vcs().commit("Work")
    assert clean(git_place) == {"ann": "removed"}
    assert ann.branch in git_place.vcs().branches()
    run(git_place.root, "git", "merge", "-q", "--ff-only", ann.branch)
    assert clean(git_place) == {"ann": "removed"}
    assert ann.branch not in git_place.vcs().branches()
    assert cleaned_agents(git_place) == ["ann"]


def test_a_cleaning_that_is_refused_leaves_no_trace(git_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from rookery.base.errors import InvalidState
    from rookery.vcs.git.checkout import Git

    def refuse(_self: Git, _folder: str) -> None:
        raise InvalidState("locked just now")

    ann = used(git_place, "ann")
    monkeypatch.setattr(Git, "remove_checkout", refuse)
    assert clean(git_place) == {"ann": "kept"}
    assert (cleaned_agents(git_place), in_work(git_place)) == ([], 0)
    assert (ann.path / "new").exists()
