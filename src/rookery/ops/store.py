"""The table of where the project lies; and what is asked of agents and leases below the rooms that own these.

Every call proves its caller, and every way to the state compares the project's place first.
"""

from __future__ import annotations

from rookery.config.project import from_stored, root_of
from rookery.db.database import Database
from rookery.db.dialect import marks
from rookery.ops.model import Caller, Location
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId

_LOCATION = Location.field_names()


def read_location(db: Database) -> Location | None:
    """The place that was written down; None in a new project."""
    row = db.one(f"SELECT {', '.join(_LOCATION)} FROM location WHERE one = 1")
    return None if row is None else Location(*row)


def write_location(db: Database, location: Location) -> None:
    """Write down where the project lies."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in _LOCATION)
    db.execute(
        f"INSERT INTO location (one, {', '.join(_LOCATION)}) VALUES (1, {marks(len(_LOCATION))}) "
        f"ON CONFLICT (one) DO UPDATE SET {changes}",
        location.as_tuple(),
    )


def caller_of_session(db: Database, session_id: str) -> Caller | None:
    """The agent of a session that has not ended."""
    return _caller(db, "id", session_id)


def caller_of_token(db: Database, token_hash: str) -> Caller | None:
    """The agent with that token, in a session that has not ended."""
    return _caller(db, "token_hash", token_hash)


def _caller(db: Database, column: str, value: str) -> Caller | None:
    row = db.one(
        f"SELECT agent, id, role, task_id, parent, worktree FROM sessions WHERE {column} = ? AND state <> 'ended'",
        (value,),
    )
    if row is None:
        return None
    caller = Caller(*row)
    return caller.replace(worktree=from_stored(root_of(db.path), caller.worktree))


def has_turn(db: Database, session_id: str, turn_id: str) -> bool:
    """True if the turn is one of the session's."""
    return db.value("SELECT 1 FROM turns WHERE id = ? AND session_id = ?", (turn_id, session_id)) is not None


def process_holders(db: Database, now: str) -> list[HolderId]:
    """The processes that drive a living agent, or have a lease that is not over."""
    rows = db.all(
        "SELECT runner_pid, runner_start FROM sessions WHERE state <> 'ended' AND runner_pid IS NOT NULL "
        "UNION ALL SELECT pid, pid_start FROM merge_leases WHERE pid IS NOT NULL AND expires_at > ?",
        (now,),
    )
    return [holders.read(pid, start) for pid, start in rows]


def has_terminals(db: Database) -> bool:
    """True if a living agent has a terminal."""
    return bool(db.value("SELECT 1 FROM sessions WHERE state <> 'ended' AND mode <> 'headless'"))
