"""Sessions of agents in numbers: each one, and all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.costs.store import Spent, spent
from rookery.db.database import Database
from rookery.merge import store as merges
from rookery.merge.model import LANDED, UNDONE, Entry
from rookery.sessions import store
from rookery.sessions.model import Session

ALIVE = "alive"
"""Instead of an outcome: a session that has not ended."""


@dataclass(frozen=True, slots=True)
class Metric(Record):
    """One session in numbers."""

    PRINTS = "agent"
    session_id: str
    agent: str
    role: str
    task_id: str | None
    run_id: str
    parent: str
    started_at: str
    ended_at: str | None
    seconds: float | None
    """From its sling to its end."""
    state: str
    outcome: str | None
    exit_status: int | None
    """That of its last turn's program, if it is known; none while the agent is alive."""
    tier: str | None
    """How its branch landed, if it did: clean, mechanical, agent, reimagine or human."""
    turns: int
    tokens: int
    dollars: float


@dataclass(frozen=True, slots=True)
class Summary(Record):
    """Sums over sessions, and what one of them has on average."""

    sessions: int
    outcomes: dict[str, int]
    """How many ended how, or are alive."""
    tiers: dict[str, int]
    """How many landed by which tier."""
    turns: int
    seconds: float
    tokens: int
    dollars: float
    average_turns: float
    average_seconds: float | None
    """Of those that have ended."""
    average_tokens: float
    average_dollars: float


@dataclass(frozen=True, slots=True)
class Metrics(Record):
    """Sessions, the newest first, and their sums."""

    PRINTS = "sessions"
    sessions: tuple[Metric, ...]
    summary: Summary


def metrics(
    db: Database, last: int, *, outcome: str | None = None, since: str | None = None, **wanted: str | None
) -> Metrics:
    """The newest sessions that fit; 0 for all. `wanted` are values of their columns."""
    with db.read():
        sessions = [
            session
            for session in reversed(store.sessions(db, alive=outcome == ALIVE, **wanted))
            if outcome in (None, session.outcome or ALIVE) and (since is None or session.created_at >= since)
        ][: last or None]
        used = spent(db, [session.id for session in sessions])
        landed = _landings(db, sessions)
        rows = tuple(
            _metric(db, session, used.get(session.id, Spent()), landed.get(session.id)) for session in sessions
        )
    return Metrics(rows, summarise(rows))


def summarise(rows: Sequence[Metric]) -> Summary:
    """The sums and averages of some sessions."""
    count, lengths = len(rows), [row.seconds for row in rows if row.seconds is not None]
    turns, tokens, dollars = (sum(getattr(row, name) for row in rows) for name in ("turns", "tokens", "dollars"))
    return Summary(
        count,
        dict(Counter(row.outcome or ALIVE for row in rows)),
        dict(Counter(row.tier for row in rows if row.tier is not None)),
        turns,
        round(sum(lengths), 3),
        tokens,
        dollars,
        turns / count if count else 0,
        sum(lengths) / len(lengths) if lengths else None,
        tokens / count if count else 0,
        dollars / count if count else 0,
    )


def _metric(db: Database, session: Session, used: Spent, landing: Entry | None) -> Metric:
    seconds = None
    if session.ended_at is not None:
        seconds = round(seconds_of(session.ended_at) - seconds_of(session.created_at), 3)
    turn = store.last_turn(db, session.id)
    return Metric(
        session.id,
        *(session.agent, session.role, session.task_id, session.run_id, session.parent),
        *(session.created_at, session.ended_at, seconds, session.state, session.outcome),
        None if turn is None or session.is_alive else turn.exit_status,
        None if landing is None else landing.tier,
        *(used.turns, used.tokens, used.dollars),
    )


def _landings(db: Database, sessions: Iterable[Session]) -> dict[str, Entry]:
    """How the branch of each session landed first. Of sessions with one branch, the last before it has the landing."""
    on_branch: dict[str, list[Session]] = {}
    for session in sessions:  # the newest first
        on_branch.setdefault(session.branch, []).append(session)
    landed: dict[str, Entry] = {}
    for branch, candidates in on_branch.items():
        for entry in merges.select(db, states=(LANDED, UNDONE), branch=branch):
            author = next((session for session in candidates if session.created_at <= entry.created_at), None)
            if author is not None:
                landed[author.id] = entry
    return landed
