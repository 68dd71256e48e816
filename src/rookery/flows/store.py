"""The tables of actions that failed and of how far the radar has come, and what the loop reads of every room at once.

After every command and every commit one query asks whether there is anything to do: over the tables of all rooms whose
facts the flows decide upon.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.db.database import Database
from rookery.flows.model import Failure
from rookery.mail.store import WAKES

# Turns end in another order than they begin, so no turn's own number says how far the radar has come. But none is ever
# deleted, and only the last one of a session can be running, so the number of those that have ended is known.
_UNSEEN = (
    "SELECT ended FROM (SELECT (SELECT coalesce(max(seq), 0) FROM turns) - (SELECT count(*) FROM sessions s "
    "WHERE s.state <> 'ended' AND 'running' = "
    "(SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1)) AS ended) AS ends "
    "WHERE ended <> coalesce((SELECT seq FROM radar_seen WHERE one = 1), 0) "
    "AND EXISTS (SELECT 1 FROM sessions WHERE state <> 'ended') AND (SELECT max(seq) FROM sessions) > 1"
)
"""How many turns have ended, if the radar has seen fewer."""
_NEEDED = (
    "SELECT EXISTS (SELECT 1 FROM sessions s WHERE state NOT IN ('waiting', 'ended') AND (s.hold IS NULL "
    "OR s.reason IS NOT NULL OR s.mode <> 'headless' "
    "OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running'))) "
    "OR EXISTS (SELECT 1 FROM sessions WHERE state = 'ended' AND swept_at IS NULL) "
    "OR EXISTS (SELECT 1 FROM sessions s WHERE s.state = 'waiting' AND (s.reason IS NOT NULL "
    "OR s.hold IS NULL AND ('lost' = "
    "(SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1) "
    "OR EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND m.turn_id IS NULL "
    f"AND {WAKES} AND (s.mode = 'headless' OR m.seq > s.nudged))))) "
    "OR EXISTS (SELECT 1 FROM merge_leases WHERE holder IS NOT NULL) "
    "OR EXISTS (SELECT 1 FROM merges WHERE state IN ('testing', 'landing') OR kind = 'undoing') "
    "OR EXISTS (SELECT 1 FROM merges WHERE state = 'landed' AND followed_at IS NULL) "
    "OR EXISTS (SELECT 1 FROM cleanings) "
    "OR EXISTS (SELECT 1 FROM identities_due) "
    f"OR EXISTS ({_UNSEEN})"
)


@dataclass(frozen=True, slots=True)
class Standing(Record):
    """A session that is alive or may have left processes, with its last turn and its mail."""

    id: str
    agent: str
    mode: str
    state: str
    step: str
    updated_at: str
    runner_pid: int | None
    runner_start: str | None
    reason: str | None
    nudged: int
    turn_id: str | None
    turn_state: str | None
    turn_ended_at: str | None
    mail: int | None
    """The number of its newest message that no turn has seen and that begins one."""
    is_held: bool = False
    """It is paused, or a person works in its place."""


def may_have_work(db: Database) -> bool:
    """True if an agent is not at rest, or a kill may have left something of an agent or of a landing."""
    return bool(db.value(_NEEDED))


def unseen_ends(db: Database) -> int | None:
    """How many turns have ended, if the radar knows of fewer and an agent is alive whose work could overlap."""
    ended = db.value(_UNSEEN)
    return None if ended is None else int(ended)


def keep_seen(db: Database, ended: int) -> None:
    """Record that the radar has seen the work of so many turns."""
    db.execute(
        "INSERT INTO radar_seen (one, seq) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq", (ended,)
    )


def standings(db: Database) -> list[Standing]:
    """Every session that is alive, or may have left processes."""
    rows = db.all(
        "SELECT s.id, s.agent, s.mode, s.state, s.step, s.updated_at, s.runner_pid, s.runner_start, s.reason, "
        "s.nudged, t.id, t.state, t.ended_at, (SELECT max(m.seq) FROM messages m WHERE m.recipient = s.agent "
        f"AND m.read_at IS NULL AND m.turn_id IS NULL AND {WAKES}), s.hold IS NOT NULL "
        "FROM sessions s LEFT JOIN turns t ON t.session_id = s.id "
        "AND t.number = (SELECT max(number) FROM turns WHERE session_id = s.id) WHERE s.state <> 'ended' "
        "UNION ALL SELECT id, agent, mode, state, step, updated_at, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0 "
        "FROM sessions WHERE state = 'ended' AND swept_at IS NULL"
    )
    return [Standing(*row[:-1]).replace(is_held=bool(row[-1])) for row in rows]


def failures(db: Database) -> dict[str, Failure]:
    """Every action whose last try failed, by its key."""
    rows = db.all("SELECT key, count, next_at, error, at, seen FROM loop_failures")
    return {row[0]: Failure(*row) for row in rows}


def record(db: Database, failure: Failure) -> None:
    """Keep a failure, instead of an earlier one of the same action."""
    db.execute(
        "INSERT INTO loop_failures (key, count, next_at, error, at, seen) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET count = excluded.count, next_at = excluded.next_at, error = excluded.error, "
        "at = excluded.at, seen = excluded.seen",
        failure.as_tuple(),
    )


def forget(db: Database, key: str) -> None:
    """Delete the failure of an action that has succeeded, or is no longer wanted."""
    db.execute("DELETE FROM loop_failures WHERE key = ?", (key,))
