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
    f"EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND {UNANSWERED} "
    f"AND (m.recipient = '{HUMAN}' AND {WANTS_ANSWER} OR ({WANTS_ANSWER} OR m.type = 'review_request') AND EXISTS "
    "(SELECT 1 FROM sessions r WHERE r.agent = m.recipient AND r.state <> 'ended')))"
)
"""Of sessions `s`, those that have asked a person or a living agent, and have no answer."""
_HANDED_OVER = (
    "EXISTS (SELECT 1 FROM messages m JOIN sessions w ON w.branch = json_extract(m.payload, '$.branch') "
    "JOIN tasks o ON o.id = w.task_id WHERE m.session_id = s.id AND m.type = 'merge_ready' "
    "AND o.state IN ('PENDING_REVIEW', 'NEEDS_REBASE', 'APPROVED'))"
)
"""Of sessions `s`, those that have handed over work which has not landed."""
_HAS_LEAD = "EXISTS (SELECT 1 FROM sessions p WHERE p.agent = s.parent AND p.state <> 'ended')"
"""Of sessions `s`, those that answer to a living agent."""
_IS_WITH_PERSON = (
    "EXISTS (SELECT 1 FROM messages m WHERE m.type = 'merge_ready' AND json_extract(m.payload, '$.branch') = t.branch "
    f"AND m.recipient = '{HUMAN}' AND m.created_at >= coalesce((SELECT r.at FROM reviews r WHERE r.task_id = t.id "
    "AND r.action = 'submitted' ORDER BY r.seq DESC LIMIT 1), ''))"
)
"""Of tasks `t`, those whose work was handed over to a person since it was handed in."""


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
    has_begun: bool
    """It was ready for its first turn, so that it can be resumed."""


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
class Queued(Record):
    """An entry of the merge queue that was not settled, and whose lead does not see to it."""

    id: str
    branch: str
    base: str
    updated_at: str


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
    asked: str | None
    """Whom it has asked something; that agent has ended."""


@dataclass(frozen=True, slots=True)
class Stray(Record):
    """An agent whose task was cancelled or deleted, and that has not ended."""

    id: str
    agent: str
    task_id: str
    title: str | None
    """None if the task was deleted."""
    since: str
    cancelled: int | None
    """The number of the event; None if the task was deleted."""


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
    """A task that was handed in and is with no living lead, or that its lead has handed over."""

    id: str
    title: str
    state: str
    agent: str | None
    branch: str | None
    commit: str | None
    updated_at: str
    start_commit: str | None
    submission: int
    """What tells one time that it was handed in from the next; 0 if that is not known."""


@dataclass(frozen=True, slots=True)
class FailedTask(Record):
    """A task that an agent has given up as failed."""

    id: str
    title: str
    reason: str | None
    agent: str
    at: str
    seq: int
    """The number of the event."""


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
        "SELECT s.id, s.agent, s.outcome, s.reason, s.ended_at, s.task_id, t.title, s.step = 'ready' "
        "FROM sessions s LEFT JOIN tasks t ON t.id = s.task_id WHERE s.outcome IN ('crashed', 'failed') "
        "AND NOT EXISTS (SELECT 1 FROM sessions n WHERE n.agent = s.agent AND n.seq > s.seq) "
        "AND (s.task_id IS NULL OR (t.archived_at IS NULL "
        "AND (t.state = 'PENDING' OR (t.state = 'IN_PROGRESS' AND t.assignee = s.agent)) "
        "AND NOT EXISTS (SELECT 1 FROM sessions o WHERE o.task_id = s.task_id AND o.seq > s.seq)))"
    )
    return [Broken(*row).replace(has_begun=bool(row[-1])) for row in rows]


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
        "AND NOT coalesce(e.state = 'failed' AND t.state IN ('PENDING_REVIEW', 'APPROVED') AND t.branch = e.branch "
        "AND t.commit_id <> e.tip, 0) "  # it was handed in again since
        f"AND NOT (e.state = 'failed' AND {_IS_WORKED_ON})"
    )
    return [Stuck(*row).replace(has_agent=bool(row[-2]), is_open=bool(row[-1])) for row in rows]


def queued(db: Database) -> list[Queued]:
    """What was queued to land and has not landed, without that of living leads."""
    rows = db.all(
        "SELECT e.id, e.branch, e.base, e.updated_at FROM merges e "
        "WHERE e.state IN ('queued', 'waiting', 'testing', 'landing') AND e.state <> 'waiting' "  # as its index says
        "AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.agent IN (e.lead, e.requested_by) AND s.state <> 'ended')"
    )
    return [Queued(*row) for row in rows]


def idle(db: Database) -> list[Idle]:
    """Agents that wait, and that nothing will wake: no mail, no answer to come, no agent under them, no review."""
    rows = db.all(
        "SELECT s.id, s.agent, s.mode, s.task_id, t.title, coalesce(u.number, 0), coalesce(u.ended_at, s.updated_at), "
        f"(SELECT m.recipient FROM messages m WHERE m.session_id = s.id AND {WANTS_ANSWER} AND {UNANSWERED} "
        "ORDER BY m.seq DESC LIMIT 1) FROM sessions s LEFT JOIN tasks t ON t.id = s.task_id "
        "LEFT JOIN turns u ON u.session_id = s.id "
        "AND u.number = (SELECT max(number) FROM turns WHERE session_id = s.id) WHERE s.state = 'waiting' "
        "AND s.reason IS NULL AND s.hold IS NULL AND u.state IS NOT 'lost' "
        "AND (s.task_id IS NULL OR t.state IN ('PENDING', 'IN_PROGRESS', 'NEEDS_REBASE')) "
        "AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.agent AND c.state <> 'ended') "
        f"AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND {WAKES}) "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND m.type = 'worker_done') "
        f"AND NOT {_HANDED_OVER} AND NOT {_HAS_OPEN_QUESTION}"
    )
    return [Idle(*row) for row in rows]


def stray(db: Database) -> list[Stray]:
    """Agents that go on although their task is no longer there to be done. A living lead sees to its own."""
    rows = db.all(
        "SELECT s.id, s.agent, s.task_id, t.title, coalesce(t.updated_at, s.updated_at), (SELECT max(seq) FROM events "
        "WHERE subject = t.id AND type = 'task.cancelled') FROM sessions s "
        "LEFT JOIN tasks t ON t.id = s.task_id WHERE s.state <> 'ended' AND s.task_id IS NOT NULL "
        f"AND (t.id IS NULL OR t.state = 'CANCELLED') AND NOT {_HAS_LEAD}"
    )
    return [Stray(*row) for row in rows]


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
    """Tasks that were handed in, and whose next step is a person's: no living lead, landing or agent sees to it."""
    rows = db.all(
        "SELECT t.id, t.title, t.state, s.agent, t.branch, t.commit_id, t.updated_at, t.start_commit, "
        "coalesce((SELECT max(seq) FROM reviews WHERE task_id = t.id AND action = 'submitted'), 0) FROM tasks t "
        "LEFT JOIN sessions s ON s.seq = (SELECT max(seq) FROM sessions WHERE task_id = t.id "
        "AND (branch = t.branch OR t.branch IS NULL)) "
        "WHERE t.state IN ('PENDING_REVIEW', 'NEEDS_REBASE', 'APPROVED', 'AWAITING_HUMAN_REVIEW') "
        f"AND t.archived_at IS NULL AND (NOT {_HAS_LEAD} OR {_IS_WITH_PERSON}) "
        "AND NOT (t.state = 'NEEDS_REBASE' AND s.state IS NOT NULL AND s.state <> 'ended') "
        "AND NOT EXISTS (SELECT 1 FROM merges e WHERE e.branch = t.branch "
        "AND e.state IN ('queued', 'testing', 'landing'))"
    )
    return [InReview(*row) for row in rows]


def failed(db: Database) -> list[FailedTask]:
    """Tasks that an agent without a living lead has given up as failed. What a person gives up, that person knows."""
    rows = db.all(
        "SELECT t.id, t.title, t.result, e.actor, e.at, e.seq FROM tasks t JOIN events e ON e.seq = "
        "(SELECT max(seq) FROM events WHERE subject = t.id AND type = 'task.failed') "
        "LEFT JOIN sessions s ON s.seq = (SELECT max(seq) FROM sessions WHERE agent = e.actor) "
        f"WHERE t.state = 'FAILED' AND t.archived_at IS NULL AND e.actor <> '{HUMAN}' AND NOT {_HAS_LEAD}"
    )
    return [FailedTask(*row) for row in rows]


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
