"""Agents whose files moved are asked to rebase once, also after a kill at any step and by two mergers at once."""

from __future__ import annotations

import pytest

from rookery.merge import store
from rookery.merge.landing import rebase_requests
from rookery.merge.merger import Merger

from .yard import DONE, Yard

_WAIT = [{"until": {"mail_type": "dispatch"}}, DONE]
_STEPS = (
    "landing recorded",
    "base moved",
    "landing written",
    "indexes follow",
    "to be followed up",
    "followed up",
)


@pytest.fixture
def near(yard: Yard) -> Yard:
    """A living agent that has changed a file, and a branch that is queued and changes it too."""
    yard.commit(shared_txt="1\n2\n3\n4\n5\n6\n7\n8\n")
    yard.sling("near", [{"edit": {"path": "shared.txt", "replace": ["8", "eight"]}}, {"commit": "Eight"}, *_WAIT])
    yard.wait_for("near", "waiting")
    yard.branch("work", shared_txt="one\n2\n3\n4\n5\n6\n7\n8\n")
    assert yard.rook("merge", "enqueue", "work").status == 0
    return yard


def asked(yard: Yard) -> int:
    return len(yard.mail(to="near", type="rebase_request"))


@pytest.mark.slow
@pytest.mark.parametrize("step", _STEPS)
def test_the_next_merger_after_a_kill_asks_once(near: Yard, step: str) -> None:
    near.killed(step, "merge", "run")
    assert near.rook("loop", "run").status == 0
    has_moved = step != "landing recorded"
    assert (near.states(), asked(near)) == ({"work": "landed" if has_moved else "queued"}, int(has_moved))
    assert near.merge("run").status == 0
    assert near.rook("loop", "run").status == 0
    assert (near.states(), asked(near)) == ({"work": "landed"}, 1)
    near.rook("stop", "near")


@pytest.mark.slow
def test_two_at_once_ask_once(near: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    near.killed("landing written", "merge", "run")
    one, other = near.merger(), near.merger()
    find = rebase_requests.touched_agents

    def find_while_another_asks(merger: Merger, *arguments: object) -> object:
        agents = find(merger, *arguments)  # type: ignore[arg-type]
        if merger is one:
            rebase_requests.follow_up(other, "main")
        return agents

    monkeypatch.setattr(rebase_requests, "touched_agents", find_while_another_asks)
    rebase_requests.follow_up(one, "main")
    assert store.unfollowed(one.ctx.db, "main") == []
    for merger in (one, other):
        merger.ctx.db.close()
    assert asked(near) == 1
    near.rook("stop", "near")


@pytest.mark.slow
def test_where_git_has_no_answer_it_is_not_asked_for_ever(near: Yard) -> None:
    near.killed("landing written", "merge", "run")
    db = near.rook.open()
    with db.write():
        db.execute("UPDATE merges SET base_before = ? WHERE branch = 'work'", ("f" * 40,))
    db.close()
    assert near.rook("loop", "run").status == 0
    merger = near.merger()
    assert store.unfollowed(merger.ctx.db, "main") == []
    merger.ctx.db.close()
    assert asked(near) == 0
    near.rook("stop", "near")


def test_every_command_finds_out_by_an_index(yard: Yard) -> None:
    db = yard.rook.open()
    plan = db.all("EXPLAIN QUERY PLAN SELECT base FROM merges WHERE state = 'landed' AND followed_at IS NULL")
    db.close()
    assert "merges_unfollowed" in str(plan)
