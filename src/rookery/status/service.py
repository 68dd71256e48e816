"""Who does what: the state of every agent, derived on read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.config import layout
from rookery.costs.store import Spent, spent, sum_up
from rookery.db.database import Database
from rookery.events.telemetry import Telemetry
from rookery.mail.store import count_unread
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.log import describe
from rookery.sessions.model import COMPLETED, NoSuchAgent, Run, Session, Turn
from rookery.tasks import store as tasks

_RECENT = 10
_MOST_DOMAINS = 8
_DOMAIN_DEPTH = 2


@dataclass(frozen=True, slots=True)
class AgentStatus(Record):
    """One agent at a glance."""

    agent: str
    role: str
    state: str
    outcome: str | None
    reason: str | None
    task_id: str | None
    task_title: str | None
    parent: str
    depth: int
    runtime: str
    mode: str
    turns: int
    unread: int
    dollars: float
    branch: str
    worktree: str
    active_at: str
    session_id: str
    sandbox: str
    """`bubblewrap` if it is in force, else why it is not."""
    doing: str | None = None
    """What it did last, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Identity(Record):
    """An agent across its lives."""

    name: str
    roles: tuple[str, ...]
    sessions: int
    completed: int
    first_seen: str
    last_seen: str
    domains: tuple[str, ...]
    """The folders that it has changed most, the first one first."""
    recent_tasks: tuple[dict[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Metric(Record):
    """One life in numbers."""

    agent: str
    role: str
    task_id: str | None
    outcome: str | None
    turns: int
    seconds: float | None
    tokens: int
    dollars: float
    session_id: str


@dataclass(frozen=True, slots=True)
class RunReport(Record):
    """A run and its agents."""

    run: Run
    agents: tuple[AgentStatus, ...]
    dollars: float


def status(
    ctx: Context, *, everybody: bool = False, run_id: str | None = None, screens: Mapping[str, str] | None = None
) -> list[AgentStatus]:
    """Every living agent, or everybody of the last lives too."""
    with ctx.db.read() as db:
        found = store.sessions(db, alive=not everybody, run_id=run_id)
        last = {session.agent: session for session in found}
        shown = _statuses(db, last.values())
    doings = _doings(ctx, [each.session_id for each in shown if each.outcome is None])
    return [
        each.replace(doing=doings.get(each.session_id) or _last_line((screens or {}).get(each.agent, "")))
        for each in shown
    ]


def _doings(ctx: Context, session_ids: list[str]) -> dict[str, str]:
    """What each did last, by its session."""
    path = ctx.path(layout.TELEMETRY)
    if not session_ids or not os.path.exists(path):
        return {}
    telemetry = Telemetry(path)
    try:
        newest = (telemetry.read(session_id=each, limit=1, newest=True) for each in session_ids)
        return {each.session_id: f"{each.name} {describe(each.data)}".strip() for found in newest for each in found}
    finally:
        telemetry.close()


def _last_line(screen: str) -> str | None:
    lines = [line.strip() for line in screen.splitlines() if any(char.isalnum() for char in line)]
    return lines[-1] if lines else None


def find(db: Database, name: str) -> Session:
    """The agent's present life, or its last; raises NoSuchAgent."""
    found = store.latest(db, name)
    if found is None:
        raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` shows who is and was there")
    return found


def identity(ctx: Context, name: str) -> Identity:
    """What an agent has been and done, over all its lives."""
    db = ctx.db
    find(db, name)
    lives = store.sessions(db, agent=name)
    titles = _titles(db, lives)
    recent = [
        {
            "task_id": life.task_id,
            "title": titles.get(life.task_id or ""),
            "outcome": life.outcome,
            "ended_at": life.ended_at,
        }
        for life in reversed(lives)
    ]
    return Identity(
        name,
        tuple(dict.fromkeys(life.role for life in lives)),
        len(lives),
        sum(life.outcome == COMPLETED for life in lives),
        lives[0].created_at,
        lives[-1].active_at,
        _domains(ctx, name),
        tuple(recent[:_RECENT]),
    )


def _domains(ctx: Context, name: str) -> tuple[str, ...]:
    """Where in the repository an agent is at home: the folders of the files that it has changed."""
    path = ctx.path(layout.TELEMETRY)
    if not os.path.exists(path):
        return ()
    telemetry = Telemetry(path)
    try:
        changed = telemetry.changed_files(name)
    finally:
        telemetry.close()
    often: dict[str, int] = {}
    for file, times in changed.items():
        folder = "/".join(file.split("/")[:-1][:_DOMAIN_DEPTH]) or "."
        often[folder] = often.get(folder, 0) + times
    return tuple(sorted(often, key=lambda folder: (-often[folder], folder))[:_MOST_DOMAINS])


def metrics(db: Database, last: int) -> list[Metric]:
    """The newest lives in numbers."""
    sessions = store.newest(db, last)
    used = spent(db, [session.id for session in sessions])
    return [_metric(session, used.get(session.id, Spent())) for session in sessions]


def _metric(session: Session, used: Spent) -> Metric:
    seconds = None
    if session.ended_at is not None:
        seconds = round(seconds_of(session.ended_at) - seconds_of(session.created_at), 3)
    who = (session.agent, session.role, session.task_id, session.outcome)
    return Metric(*who, used.turns, seconds, used.tokens, used.dollars, session.id)


def run_report(ctx: Context, run: Run) -> RunReport:
    """A run with everybody who was slung in it, and all that was spent on it."""
    agents = status(ctx, everybody=True, run_id=run.id)
    spent = sum_up(ctx.db, "run", agent=None, run=run.id, since=None)
    return RunReport(run, tuple(agents), spent.total.dollars)


def _statuses(db: Database, sessions: Collection[Session]) -> list[AgentStatus]:
    used = spent(db, [session.id for session in sessions])
    titles = _titles(db, sessions)
    return [
        _status(
            session,
            titles.get(session.task_id or ""),
            used.get(session.id, Spent()),
            count_unread(db, session.agent),
        )
        for session in sessions
    ]


def _status(session: Session, title: str | None, used: Spent, unread: int) -> AgentStatus:
    return AgentStatus(
        agent=session.agent,
        role=session.role,
        state=session.state,
        outcome=session.outcome,
        reason=session.reason,
        task_id=session.task_id,
        task_title=title,
        parent=session.parent,
        depth=session.depth,
        runtime=session.runtime,
        mode=session.mode,
        turns=used.turns,
        unread=unread,
        dollars=used.dollars,
        branch=session.branch,
        worktree=session.worktree,
        active_at=session.active_at,
        session_id=session.id,
        sandbox=session.settings.sandbox,
    )


def _titles(db: Database, sessions: Collection[Session]) -> dict[str, str]:
    """The titles of the tasks that sessions were slung for, by their ids."""
    wanted = {session.task_id for session in sessions if session.task_id}
    return {task.id: task.title for task in tasks.get_many(db, wanted).values()}


@dataclass(frozen=True, slots=True)
class Inspection(Record):
    """One agent at length."""

    status: AgentStatus
    session: Session
    turns: tuple[Turn, ...]
    children: tuple[str, ...]
    screen: str | None
