from __future__ import annotations

from typing import Any

import pytest

from agent_rows import Agent
from conftest import Clock, Rook
from rookery.merge import store as merges
from rookery.merge.model import Entry
from rookery.overview.metrics import Metric, summarise
from rookery.sessions import store

_AT = "2026-01-01T12:00:00.000Z"


def _metric(outcome: str | None, seconds: float | None, tier: str | None, turns: int) -> Metric:
    state = "working" if outcome is None else "ended"
    return Metric(
        "s", "bee", "builder", None, "run", "human", _AT, None, seconds, state, outcome, 0, tier, turns, 10, 0.5
    )


def test_totals_and_averages() -> None:
    rows = [_metric("completed", 10.0, "clean", 3), _metric("crashed", 30.0, None, 1), _metric(None, None, None, 2)]
    summary = summarise(rows)
    assert (summary.sessions, summary.turns, summary.seconds, summary.tokens, summary.dollars) == (3, 6, 40.0, 30, 1.5)
    assert (summary.average_turns, summary.average_seconds, summary.average_dollars) == (2.0, 20.0, 0.5)
    assert summary.outcomes == {"completed": 1, "crashed": 1, "alive": 1}
    assert summary.tiers == {"clean": 1}
    assert summarise([]).average_seconds is None


def _sessions(rook: Rook, *words: str) -> list[dict[str, Any]]:
    ran = rook.json("metrics", *words)
    assert ran.status == 0, ran
    sessions: list[dict[str, Any]] = ran.data["sessions"]
    assert ran.data["summary"]["sessions"] == len(sessions)
    return sessions


@pytest.fixture
def worked(rook: Rook, clock: Clock) -> Rook:
    """A lead that is alive, and an agent below it that has ended, and whose branch has landed."""
    lead = Agent(rook.folder, "queen", "lead")
    bee = Agent(rook.folder, "bee", under=lead)
    db = rook.open()
    session = store.session(db, bee.session_id)
    ended = session.created_at[:17] + "59.999Z"
    entry = Entry(
        id="mrg_1",
        branch=session.branch,
        base="main",
        tip="0" * 40,
        task_id=bee.task,
        agent="bee",
        lead=None,
        run_id=None,
        priority=3,
        requested_by="human",
        created_at=ended,
        updated_at=ended,
    )
    with db.write():
        store.change_session(db, session, at=ended, move="end", outcome="completed", reason="done", ended_at=ended)
        merges.insert(db, entry)
        db.execute("UPDATE merges SET state = 'landed', tier = 'mechanical'")
    db.close()
    return rook


def test_a_session_has_its_end_its_parent_and_how_its_branch_landed(worked: Rook) -> None:
    bee, queen = _sessions(worked)
    assert (bee["agent"], bee["outcome"], bee["parent"], bee["tier"]) == ("bee", "completed", "queen", "mechanical")
    assert bee["seconds"] is not None
    assert bee["ended_at"] > bee["started_at"]
    assert (queen["outcome"], queen["tier"], queen["ended_at"], queen["exit_status"]) == (None, None, None, None)
    assert (bee["state"], queen["state"]) == ("ended", "working")
    shown = worked("metrics").out.decode()
    assert next(row for row in shown.splitlines() if row.startswith("queen")).split()[:3] == [
        "queen",
        "lead",
        "working",
    ]
    assert "mechanical" in shown
    assert "total" in shown


def test_filters(worked: Rook) -> None:
    for words, names in (
        (["--agent", "bee"], ["bee"]),
        (["--role", "lead"], ["queen"]),
        (["--parent", "queen"], ["bee"]),
        (["--outcome", "completed"], ["bee"]),
        (["--outcome", "alive"], ["queen"]),
        (["--outcome", "failed"], []),
        (["--since", "1h"], ["bee", "queen"]),
        (["--last", "1"], ["bee"]),
    ):
        assert [session["agent"] for session in _sessions(worked, *words)] == names, words
    assert worked.json("metrics", "--agent", "stranger").error["code"] == "no_such_agent"
    assert worked.json("metrics", "--last", "-1").error["code"] == "invalid_input"


def test_agents_are_discovered_by_state_and_parent(worked: Rook) -> None:
    def alive(*words: str) -> dict[str, list[str]]:
        return {role["role"]: role["alive"] for role in worked.json("agents", "discover", *words).data}

    assert alive()["lead"] == ["queen"]
    assert alive("--state", "working", "--parent", "human") == {"lead": ["queen"]}
    assert alive("--state", "waiting") == {}
    assert alive("--parent", "queen") == {}
    assert b"No such agents." in worked("agents", "discover", "--parent", "queen").out
