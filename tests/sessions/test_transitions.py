"""A session's state changes only by a step of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_rows import Agent
from rookery.base.errors import InvalidState
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.events.store import read
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import STATES, TRANSITIONS, Turn, next_state
from rookery.turns import interactive
from support import SOURCE


def test_what_the_table_does_not_allow_is_refused_and_changes_nothing(project: Path) -> None:
    agent = Agent(project, "bee")
    db = Database.open(database_path(str(project)))
    session = store.session(db, agent.session_id)
    for state in STATES:
        known = session.replace(state=state)
        for step, (sources, target) in TRANSITIONS.items():
            if state in sources:
                assert next_state(step, known) == target
                continue
            with pytest.raises(InvalidState, match=f"bee is {state}"), db.write():
                store.change_session(db, known, "", actor="bee", at=session.updated_at, move=step)
    assert store.session(db, agent.session_id) == session
    with pytest.raises(TypeError):
        store.change_session(db, session, "", actor="bee", at=session.updated_at, state="ended")
    db.close()


def test_a_turn_that_has_changed_meanwhile_is_left_alone(project: Path) -> None:
    agent = Agent(project, "bee")
    db = Database.open(database_path(str(project)))
    turn = Turn("turn_1", agent.session_id, 7, "begin", "running", None, None, None, None, None, "x", None)
    with db.write():
        store.insert_turn(db, turn, "bee", at="x")
        ended = store.change_turn(db, turn, state="interrupted", ended_at="y")
    with pytest.raises(LookupError, match="no longer running"), db.write():
        store.change_turn(db, turn, state="done", ended_at="z")
    assert store.turn(db, turn.id) == ended
    with db.write():
        store.change_turn(db, ended, snapshot="c0ffee")
    assert store.turn(db, turn.id).snapshot == "c0ffee"
    db.close()


def test_a_turn_that_is_interrupted_while_its_end_is_recorded_stays_interrupted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(project, "bee")
    db = Database.open(database_path(str(project)))
    ctx = Context.at(str(project), db, load_config(str(project), read_environ({}), {}).config)
    turn = Turn("turn_1", agent.session_id, 1, "begin", "running", None, None, None, None, None, ctx.now(), None)
    store.insert_turn(db, turn, "bee", at=ctx.now())

    def interrupt(*_: object) -> None:
        store.change_turn(db, turn, state="interrupted", ended_at=ctx.now())

    monkeypatch.setattr(interactive, "take_snapshot", interrupt)
    interactive.end_turn(ctx, agent.session_id)
    assert store.turn(db, turn.id).state == "interrupted"
    assert read(db, kinds=("turn.ended",)) == []
    db.close()


def test_a_session_that_has_changed_meanwhile_is_left_alone(project: Path) -> None:
    agent = Agent(project, "bee")
    db = Database.open(database_path(str(project)))
    before = store.session(db, agent.session_id)
    waiting = store.change_session(db, before, "", actor="bee", at=before.updated_at, move="wait")
    with pytest.raises(LookupError):
        store.change_session(db, before, "", actor="bee", at=before.updated_at, move="end")
    assert store.session(db, agent.session_id) == waiting
    db.close()


def test_nothing_else_writes_a_sessions_state() -> None:
    writes = re.compile(r"UPDATE sessions SET [^\"W]*\bstate =")
    writers = [str(path) for path in Path(SOURCE).rglob("*.py") if writes.search(path.read_text())]
    assert writers == []
