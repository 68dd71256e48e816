"""The table of what a person has put away, and the queries for what waits, over the tables of many rooms.

Each query begins with an index that has nothing but what is wrong, so that a long history costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.db.database import Database
from rookery.inbox.model import MOST_FAILURES, Mark
from rookery.mail.model import HUMAN
from rookery.mail.store import UNANSWERED, WAKES, WANTS_ANSWER

_IS_WORKED_ON = (
    "EXISTS (SELECT 1 FROM sessions s WHERE s.agent = e.agent AND s.state <> 'ended' AND (s.state <> 'waiting' "
    f"OR EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND {WAKES})))"
)
"""Of entries `e`, those whose agent is at work, or is about to be."""
_HAS_OPEN_QUESTION = (
    f"EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND {WANTS_ANSWER} AND {UNANSWERED} "
    f"AND (m.recipient = '{HUMAN}' OR EXISTS "
    "(SELECT 1 FROM sessions r WHERE r.agent = m.recipient AND r.state <> 'ended')))"
)
"""Of sessions `s`, those that have asked a person or a living agent, and have no answer."""


@dataclass(frozen=True, slots=True)
class Asked(Record):
    """A message to the person that wants an answer and has none."""

    id: str
    type: str
    sender: str
    subject: str
    priority: str
    created_at: str
    task_id: str | None
    title: str | None
    is_over: bool
    """Its sender's session has ended."""


@dataclass(frozen=True, slots=True)
class Broken(Record):
    """The last session of an agent, which crashed or failed, and whose task no one has taken over."""

    id: str
    agent: str
    outcome: str
    reason: str | None
    ended_at: str
    task_id: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Stuck(Record):
    """The newest entry of a branch, which failed or waits for a person."""

    id: str
    branch: str
    base: str
    agent: str | None
    task_id: str | None
    state: str
    kind: str | None
    reason: str | None
    attempts: int
    updated_at: str
    log: str | None
    title: str | None
    has_agent: bool
    """Its agent is alive."""
    is_open: bool
    """A person has its conflict open."""


@dataclass(frozen=True, slots=True)
class Idle(Record):
    """An agent that waits, has asked no one and handed in nothing."""

    id: str
    agent: str
    mode: str
    task_id: str | None
    title: str | None
    turn: int
    since: str


@dataclass(frozen=True, slots=True)
class GivenUp(Record):
    """An action that the loop has given up."""

    key: str
    count: int
    error: str
    at: str
    agent: str | None


@dataclass(frozen=True, slots=True)
class InReview(Record):
    """A task in review that no living lead looks at."""

    id: str
    title: str
    state: str
    agent: str | None
    branch: str | None
    commit: str | None
    updated_at: str


def asked(db: Database) -> list[Asked]:
    """What agents have asked or reported to the person, without an answer; read or not, acknowledged or not."""
    rows = db.all(
        "SELECT m.id, m.type, m.sender, m.subject, m.priority, m.created_at, s.task_id, t.title, "
        "coalesce(s.state = 'ended', 0) FROM messages m LEFT JOIN sessions s ON s.id = m.session_id "
        f"LEFT JOIN tasks t ON t.id = s.task_id WHERE m.recipient = '{HUMAN}' AND {WANTS_ANSWER} AND {UNANSWERED}"
    )
    return [Asked(*row).replace(is_over=bool(row[-1])) for row in rows]


def broken(db: Database) -> list[Broken]:
    """Agents that crashed or failed, and whose task is still open and in no other hands."""
    rows = db.all(
        "SELECT s.id, s.agent, s.outcome, s.reason, s.ended_at, s.task_id, t.title FROM sessions s "
        "LEFT JOIN tasks t ON t.id = s.task_id WHERE s.outcome IN ('crashed', 'failed') "
        "AND NOT EXISTS (SELECT 1 FROM sessions n WHERE n.agent = s.agent AND n.seq > s.seq) "
        "AND (s.task_id IS NULL OR (t.archived_at IS NULL "
        "AND (t.state = 'PENDING' OR (t.state = 'IN_PROGRESS' AND t.assignee = s.agent)) "
        "AND NOT EXISTS (SELECT 1 FROM sessions o WHERE o.task_id = s.task_id AND o.seq > s.seq)))"
    )
    return [Broken(*row) for row in rows]


def stuck(db: Database) -> list[Stuck]:
    """Branches that failed to land or wait for a person, but for those that their agent works on, and replaced ones."""
    rows = db.all(
        "SELECT e.id, e.branch, e.base, e.agent, e.task_id, e.state, e.kind, e.reason, e.attempts, e.updated_at, "
        "e.log, t.title, EXISTS (SELECT 1 FROM sessions s WHERE s.agent = e.agent AND s.state <> 'ended'), "
        "EXISTS (SELECT 1 FROM open_conflicts c WHERE c.merge_id = e.id) "
        "FROM merges e LEFT JOIN tasks t ON t.id = e.task_id WHERE e.state IN ('failed', 'waiting') "
        "AND NOT EXISTS (SELECT 1 FROM merges n WHERE n.branch = e.branch AND n.base = e.base AND n.seq > e.seq) "
        "AND (t.id IS NULL OR (t.state NOT IN ('COMPLETED', 'CANCELLED') AND t.archived_at IS NULL)) "
        "AND NOT EXISTS (SELECT 1 FROM sessions o WHERE o.task_id = e.task_id AND o.branch <> e.branch "
        "AND o.created_at > e.created_at) "
        f"AND NOT (e.state = 'failed' AND {_IS_WORKED_ON})"
    )
    return [Stuck(*row).replace(has_agent=bool(row[-2]), is_open=bool(row[-1])) for row in rows]


def idle(db: Database) -> list[Idle]:
    """Agents that wait, and that nothing will wake: no mail, no answer to come, no agent under them, no review."""
    rows = db.all(
        "SELECT s.id, s.agent, s.mode, s.task_id, t.title, coalesce(u.number, 0), coalesce(u.ended_at, s.updated_at) "
        "FROM sessions s LEFT JOIN tasks t ON t.id = s.task_id LEFT JOIN turns u ON u.session_id = s.id "
        "AND u.number = (SELECT max(number) FROM turns WHERE session_id = s.id) WHERE s.state = 'waiting' "
        "AND s.reason IS NULL AND u.state IS NOT 'lost' "
        "AND (t.id IS NULL OR t.state IN ('PENDING', 'IN_PROGRESS')) "
        "AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.agent AND c.state <> 'ended') "
        f"AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND {WAKES}) "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id "
        "AND m.type IN ('worker_done', 'merge_ready', 'review_request')) "
        f"AND NOT {_HAS_OPEN_QUESTION}"
    )
    return [Idle(*row) for row in rows]


def given_up(db: Database) -> list[GivenUp]:
    """Actions that the loop has left to a person, but for those of agents that are gone."""
    rows = db.all(
        "SELECT f.key, f.count, f.error, f.at, s.agent FROM loop_failures f "
        "LEFT JOIN sessions s ON s.id = substr(f.key, -30) "
        "WHERE f.count >= ? AND NOT coalesce(s.state = 'ended' AND s.swept_at IS NOT NULL, 0)",
        (MOST_FAILURES,),
    )
    return [GivenUp(*row) for row in rows]


def in_review(db: Database) -> list[InReview]:
    """Tasks in review whose agent answers to no living lead, and that are not just landing."""
    rows = db.all(
        "SELECT t.id, t.title, t.state, s.agent, t.branch, t.commit_id, t.updated_at FROM tasks t "
        "LEFT JOIN sessions s ON s.seq = (SELECT max(seq) FROM sessions WHERE task_id = t.id) "
        "WHERE t.state IN ('PENDING_REVIEW', 'AWAITING_HUMAN_REVIEW') AND t.archived_at IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.agent = s.parent AND p.state <> 'ended') "
        "AND NOT EXISTS (SELECT 1 FROM merges e WHERE e.branch = t.branch "
        "AND e.state IN ('queued', 'testing', 'landing'))"
    )
    return [InReview(*row) for row in rows]


def marks(db: Database) -> dict[str, Mark]:
    """What a person has put away, by key."""
    rows = db.all("SELECT key, until, actor, at FROM inbox_marks")
    return {row[0]: Mark(*row) for row in rows}


def put_away(db: Database, mark: Mark) -> None:
    """Keep that a person has put something away, instead of an earlier mark of the same."""
    db.execute(
        "INSERT INTO inbox_marks (key, until, actor, at) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
        "until = excluded.until, actor = excluded.actor, at = excluded.at",
        mark.as_tuple(),
    )


def forget(db: Database, key: str) -> None:
    """It is open again, or gone."""
    db.execute("DELETE FROM inbox_marks WHERE key = ?", (key,))
