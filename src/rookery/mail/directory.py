"""Who there is to write to: a reader of the sessions, turns and groups that others keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.db.database import Database
from rookery.mail.model import TurnOver
from rookery.ops.caller import Caller


@dataclass(frozen=True, slots=True)
class Life(Record):
    """As much of an agent's session as mail has to know."""

    session_id: str
    agent: str
    role: str
    parent: str
    token_hash: str
    is_alive: bool


_SELECT = "SELECT id, agent, role, parent, token_hash, state <> 'ended' FROM sessions"


def living(db: Database) -> list[Life]:
    """Every agent that has not ended, by name."""
    return list(_lives(db, f"{_SELECT} WHERE state <> 'ended' ORDER BY agent"))


def find(db: Database, agent: str) -> Life | None:
    """The agent's newest life, ended or not."""
    return next(_lives(db, f"{_SELECT} WHERE agent = ? ORDER BY seq DESC LIMIT 1", agent), None)


def agents(db: Database) -> list[str]:
    """The names of all that are or were here."""
    return [row[0] for row in db.all("SELECT DISTINCT agent FROM sessions ORDER BY agent")]


def running_turn(db: Database, session_id: str) -> str | None:
    """The turn that the session is in."""
    found: str | None = db.value(
        "SELECT id FROM turns WHERE session_id = ? AND state = 'running' ORDER BY number DESC LIMIT 1", (session_id,)
    )
    return found


def current_turn(db: Database, caller: Caller) -> str | None:
    """The turn that the caller runs in, None outside of one.

    The session's own turn counts, whatever the environment says: a program in a terminal cannot be given a new
    variable with every turn. But what a turn left running must not take mail away from the turn after it.
    """
    running = None if caller.session_id is None else running_turn(db, caller.session_id)
    if caller.turn is not None and caller.turn != running:
        raise TurnOver(f"the turn {caller.turn} of {caller.name} is not running")
    return running


def group_members(db: Database, group: str) -> list[str]:
    """Who is in a named group; nobody if there is no such group."""
    return [row[0] for row in db.all("SELECT member FROM mail_groups WHERE name = ? ORDER BY member", (group,))]


def group_names(db: Database) -> list[str]:
    """Every named group."""
    return [row[0] for row in db.all("SELECT DISTINCT name FROM mail_groups ORDER BY name")]


def _lives(db: Database, sql: str, *values: str) -> Iterator[Life]:
    for session_id, agent, role, parent, token_hash, is_alive in db.all(sql, values):
        yield Life(session_id, agent, role, parent, token_hash, bool(is_alive))
