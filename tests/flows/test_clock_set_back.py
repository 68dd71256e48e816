"""A clock that is set back by a day: caps hold, and nothing waits longer than it would have."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rows import Agent
from conftest import Clock, Rook
from rookery.agents.reservation import Request, reserve
from rookery.base.clock import seconds_of, stamp
from rookery.config.environ import now
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.events.store import publish
from rookery.flows import loop
from rookery.merge import lease_store
from rookery.merge import store as merges
from rookery.merge.lease_store import LeaseRow
from rookery.merge.model import GateRun
from rookery.ops.context import Context
from rookery.processes import holder, owned_folders
from rookery.sessions import store as sessions
from rookery.sessions.model import STOPPING, CapReached
from rookery.turns import stop
from support import add

DAY = 24


@pytest.fixture
def ctx(project: Path, clock: Clock) -> Context:
    del clock  # the context's time is the test's
    return Context.at(str(project), Database.open(database_path(str(project))))


def test_the_lease_of_a_claimed_task_goes_on_for_what_was_left_of_it(rook: Rook, project: Path, clock: Clock) -> None:
    rook("task", "create", "One")
    assert rook("task", "claim", "--agent", "ada", "--lease", "10m").status == 0
    clock.advance(hours=-DAY)
    rook("task", "create", "Another")  # the newest event is not in the future any more
    claimed = rook.json("task", "claim", "--agent", "bob").data["title"]
    assert claimed == "Another"
    clock.advance(minutes=9)
    assert rook.json("task", "claim", "--agent", "bob").data is None  # ada's lease is not over
    clock.advance(minutes=2)
    assert rook.json("task", "claim", "--agent", "bob").data["title"] == "One"
    db = Database.open(database_path(str(project)))
    assert db.value("SELECT count(*) FROM events WHERE type = 'clock.set_back'") == 1
    db.close()
    assert rook("doctor", "--json").status == 0  # the events tell the same as the table


def test_the_lease_of_a_merger_that_hangs_goes_on_for_what_was_left_of_it(ctx: Context, clock: Clock) -> None:
    me = holder.myself()
    with ctx.db.write() as db:
        lease_store.save(db, LeaseRow("main", 1, "human", me, stamp(now() + 120)))
        publish(db, "merge.queued", "mrg", {}, actor="human", at=ctx.now())
    clock.advance(hours=-DAY)
    for _ in range(2):
        loop.run_once(ctx, lambda _text: None)
    lease = lease_store.find(ctx.db, "main")
    assert lease is not None
    assert 100 < seconds_of(lease.expires_at) - now() <= 121
    ctx.db.close()


def test_a_small_correction_of_the_clock_changes_nothing(ctx: Context, clock: Clock) -> None:
    with ctx.db.write() as db:
        publish(db, "merge.queued", "mrg", {}, actor="human", at=ctx.now())
    clock.advance(seconds=-20)
    loop.run_once(ctx, lambda _text: None)
    assert ctx.db.value("SELECT count(*) FROM events WHERE type = 'clock.set_back'") == 0
    ctx.db.close()


def test_a_stop_that_began_elsewhere_is_finished(ctx: Context, project: Path, clock: Clock) -> None:
    agent = Agent(project, "bee")
    elsewhere = holder.myself().replace(namespace="another")
    clock.advance(hours=DAY)
    with ctx.db.write() as db:
        reason = f"{STOPPING} {elsewhere.pid} {elsewhere.text}"
        db.execute("UPDATE sessions SET reason = ?, updated_at = ?", (reason, ctx.now()))
    assert not stop.is_abandoned(ctx, sessions.session(ctx.db, agent.session_id))
    clock.advance(hours=-DAY)
    assert stop.is_abandoned(ctx, sessions.session(ctx.db, agent.session_id))
    ctx.db.close()


def test_a_folder_of_a_holder_elsewhere_is_not_kept_longer(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    elsewhere = holder.myself().replace(namespace="another")
    (tmp_path / "gate.owner").symlink_to(f"{elsewhere.pid} {elsewhere.text}")
    noted = (tmp_path / "gate.owner").lstat().st_mtime
    assert not owned_folders.is_left(str(folder), noted + 60)
    assert owned_folders.is_left(str(folder), noted - 86_400)


def test_an_agent_slings_no_more_than_it_may(ctx: Context, project: Path, clock: Clock) -> None:
    queen = Agent(project, "queen", "lead")
    with ctx.db.write() as db:
        db.execute("UPDATE sessions SET settings = json_set(settings, '$.max_agents', 1)")
    clock.advance(hours=-DAY)

    def sling(name: str) -> None:
        task = add(ctx.db, f"work of {name}", queen.task)
        reserve(ctx, Request(task, "builder", "queen", "0" * 40, name=name, mode="tmux", parent="queen"))

    sling("bee")
    with pytest.raises(CapReached):
        sling("ant")
    assert [session.agent for session in sessions.children(ctx.db, sessions.session(ctx.db, queen.session_id))] == [
        "bee"
    ]
    ctx.db.close()


def test_the_result_of_a_gate_that_another_process_kept_is_found(ctx: Context, clock: Clock) -> None:
    """A merger that waits for a gate takes what was kept while it waited, and nothing older."""

    def keep(verdict: str) -> None:
        run = GateRun("test", "tree", verdict, 0, 1.0, str(Path(ctx.root) / ".rookery/gates/log"), ctx.now())
        with ctx.db.write() as db:
            merges.add_gate_run(db, run, "command", actor="human", at=ctx.now())

    keep("failed")
    waiting_since = merges.last_gate_seq(ctx.db)
    assert merges.last_gate_run(ctx.db, "tree", "command", after=waiting_since) is None
    clock.advance(hours=-DAY)
    keep("passed")
    run = merges.last_gate_run(ctx.db, "tree", "command", after=waiting_since)
    assert run is not None
    assert run.verdict == "passed"
    ctx.db.close()
