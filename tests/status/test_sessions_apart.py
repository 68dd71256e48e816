"""What one session did is not mixed with what an earlier one of the same name did; levels of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rows import Agent
from conftest import Clock, Rook
from rookery.base.clock import stamp
from rookery.config.environ import now
from rookery.events.telemetry import Telemetry
from rookery.sessions import store
from support import start_rook, wait_until


def _end(rook: Rook, agent: Agent) -> None:
    db = rook.open()
    with db.write():
        session, at = store.session(db, agent.session_id), stamp(now())
        store.change_session(db, session, "agent.ended", at=at, move="end", outcome="stopped", ended_at=at)
    db.close()


def _record(folder: Path, session_id: str, kind: str, text: str, *, failed: bool = False) -> None:
    telemetry = Telemetry(str(folder / ".rookery/telemetry.db"))
    telemetry.add(
        at=stamp(now()),
        agent="bee",
        session_id=session_id,
        turn_id=None,
        kind=kind,
        is_error=failed,
        data={"text": text},
    )
    telemetry.close()


@pytest.fixture
def twice(rook: Rook, clock: Clock) -> tuple[Rook, Agent, Agent]:
    """Two sessions of one name: the first has ended, the second is alive."""
    first = Agent(rook.folder, "bee")
    _record(rook.folder, first.session_id, "text", "in the first")
    _end(rook, first)
    clock.advance(minutes=5)
    second = Agent(rook.folder, "bee")
    _record(rook.folder, second.session_id, "text", "in the second")
    return rook, first, second


def test_one_session_is_shown_unless_all_are_asked_for(twice: tuple[Rook, Agent, Agent]) -> None:
    rook, first, second = twice
    shown = rook("inspect", "bee").out.decode()
    assert "in the second" in shown
    assert "in the first" not in shown
    shown = rook("inspect", "bee", "--session", first.session_id[-6:].lower()).out.decode()
    assert "in the first" in shown
    assert "in the second" not in shown
    assert "stopped" in shown
    shown = rook("inspect", "bee", "--all-sessions").out.decode()
    assert "in the first" in shown
    assert "in the second" in shown
    listed = rook.json("agents", "show", "bee").data["recent_tasks"]
    assert [task["session_id"] for task in listed] == [second.session_id, first.session_id]
    refused = rook.json("inspect", "bee", "--session", "nothing").error
    assert refused["code"] == "not_found"
    assert rook("inspect", "bee", "--session", first.session_id, "--all-sessions").status == 1


@pytest.mark.slow
def test_following_ends_with_the_session(twice: tuple[Rook, Agent, Agent]) -> None:
    rook, _first, second = twice
    child = start_rook(rook.folder, "inspect", "bee", "--follow", "--json")
    assert child.stdout is not None
    wait_until(child.stdout.readline)
    _end(rook, second)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert b"agent.ended" in out


def test_levels_of_the_log(rook: Rook) -> None:
    bee = Agent(rook.folder, "bee")
    for kind, failed in (("usage", False), ("text", False), ("denied", True), ("limit", False), ("tool", True)):
        _record(rook.folder, bee.session_id, kind, kind, failed=failed)
    for level, kinds in (
        ("error", ["tool"]),
        ("warn", ["denied", "limit", "tool"]),
        ("info", ["text", "denied", "limit", "tool"]),
        ("debug", ["usage", "text", "denied", "limit", "tool"]),
    ):
        shown = [line.split()[2] for line in rook("logs", "bee", "--level", level).out.decode().splitlines()]
        assert shown == kinds, level
    assert len(rook("logs", "bee", "--level", "info", "--limit", "2").out.splitlines()) == 2
    assert rook("logs", "--level", "loud").status == 2


def test_a_session_is_primed_with_what_happened_last(rook: Rook) -> None:
    bee = Agent(rook.folder, "bee")
    done = rook.json("task", "create", "Done").data["id"]
    rook("task", "complete", done)
    _end(rook, bee)
    shown = rook("prime").out.decode()
    assert "## What happened last" in shown
    assert "agent ended, `bee`" in shown
    assert f"task completed, `{done[-6:].lower()}` by human" in shown
    for _ in range(20):
        rook("task", "complete", rook.json("task", "create", "More").data["id"])
    assert rook("prime").out.decode().count("task completed") == 6
