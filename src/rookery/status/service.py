"""What every agent is doing, derived on read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rookery.base.errors import NotFound
from rookery.base.record import Record
from rookery.costs.store import Spent, spent, sum_up
from rookery.db.database import Database
from rookery.events.store import Bounds
from rookery.mail import store as mail_store
from rookery.mail.model import Message
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import (
    BOOTING,
    COMPLETED,
    ENDED,
    WAITING,
    WORKING,
    Hold,
    NoSuchAgent,
    Run,
    Session,
    Turn,
    last_by,
)
from rookery.status.activity import open_telemetry
from rookery.status.last_action import LastAction, last_action, of_screen
from rookery.tasks import store as tasks

_RECENT = 10
_NEWEST_RECORDS = 8
"""How many records of an agent are read for what it did last: some, such as usage, do not say."""
_MOST_DOMAINS = 8
_DOMAIN_DEPTH = 2


@dataclass(frozen=True, slots=True)
class AgentStatus(Record):
    """One agent in a line."""

    PRINTS = "agent"
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
    since: str
    """When it came into its state."""
    ended_at: str | None
    hold: Hold | None = None
    """Who has paused it, or works in its place."""
    last: LastAction | None = None
    """What it did last, as far as it is known."""


_OF_SESSION = tuple(name for name in AgentStatus.field_names() if name in Session.field_names())
"""What an agent's status takes over from its session."""


@dataclass(frozen=True, slots=True)
class Identity(Record):
    """An agent over all its sessions."""

    PRINTS = "name"
    name: str
    roles: tuple[str, ...]
    sessions: int
    completed: int
    first_seen: str
    last_seen: str
    domains: tuple[str, ...]
    """The folders in which it changed files most often, the first one first."""
    recent_tasks: tuple[dict[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class RunReport(Record):
    """A run and its agents."""

    PRINTS = "run"
    run: Run
    agents: tuple[AgentStatus, ...]
    dollars: float


@dataclass(frozen=True, slots=True)
class Inspection(Record):
    """One agent at length."""

    status: AgentStatus
    session: Session
    turns: tuple[Turn, ...]
    children: tuple[str, ...]
    screen: str | None


def status(
    ctx: Context,
    *,
    ended: bool = False,
    run_id: str | None = None,
    agent: str | None = None,
    screens: Mapping[str, str] | None = None,
) -> list[AgentStatus]:
    """Every living agent, or one; with `ended`, also the last session of those that have ended."""
    return describe(ctx, list(sessions_by_agent(ctx.db, ended=ended, run_id=run_id, agent=agent).values()), screens)


def sessions_by_agent(
    db: Database, *, ended: bool = False, run_id: str | None = None, agent: str | None = None
) -> dict[str, Session]:
    """The present session of each agent, or of one; with `ended`, also the last one of those that have ended."""
    return last_by("agent", store.sessions(db, alive=not ended, run_id=run_id, agent=agent))


def ended_since(db: Database, at: str, alive: Collection[str]) -> dict[str, Session]:
    """The last session of each agent that has ended since a time, but for those that are alive again."""
    sessions = store.sessions_ended_since(db, at)
    return {name: session for name, session in last_by("agent", sessions).items() if name not in alive}


def describe(
    ctx: Context, sessions: Collection[Session], screens: Mapping[str, str] | None = None
) -> list[AgentStatus]:
    """What these sessions' agents are doing; `screens` is what their terminals show, where that is known."""
    with ctx.db.read() as db:
        agents = _statuses(db, sessions)
        sent = {session.id: _last_sent(db, session) for session in sessions if session.is_alive}
    with open_telemetry(ctx) as telemetry:
        for number, agent in enumerate(agents):
            if agent.state == ENDED:
                continue
            bounds: Bounds = {"limit": _NEWEST_RECORDS, "newest": True}
            entries = [] if telemetry is None else telemetry.read(session_id=agent.session_id, **bounds)
            action = last_action(reversed(entries), sent[agent.session_id], agent.worktree)
            action = action or of_screen((screens or {}).get(agent.agent, ""))
            agents[number] = agent.replace(last=_waits(agent, action))
    return agents


def _waits(agent: AgentStatus, action: LastAction | None) -> LastAction | None:
    """What an agent did last; of one that waits, whom it asked or wrote to at the end of its turn, if anyone."""
    if agent.state != WAITING or (action is not None and action.is_mail):
        return action
    return LastAction("waits for mail", None)


def _last_sent(db: Database, session: Session) -> Message | None:
    """The newest message that the agent has sent in this session."""
    newest = next(iter(mail_store.select(db, mail_store.Query(sender=session.agent, limit=1))), None)
    return newest if newest is not None and newest.session_id == session.id else None


def find(db: Database, name: str) -> Session:
    """The agent's present session, or its last; raises NoSuchAgent."""
    session = store.latest(db, name)
    if session is None:
        raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` also lists agents that have ended")
    return session


def find_session(db: Database, name: str, text: str | None = None) -> Session:
    """The session of an agent that a text names, by its id or the end of it; without one, its last."""
    latest = find(db, name)
    if text is None:
        return latest
    ending = text.upper().removeprefix("SES_")
    fitting = [session for session in store.sessions(db, agent=name) if ending and session.id.endswith(ending)]
    if len(fitting) != 1:
        problem = "no session" if not fitting else "more than one session"
        raise NotFound(f"{name} has {problem} {text}", hint=f"`rook agents show {name}` lists its sessions")
    return fitting[0]


def find_run(db: Database, run: str | None) -> Run:
    """The run that the text names or, for None, the newest that is under way, else the newest; raises NotFound."""
    newest = store.newest_run(db) if run is None else store.find_run(db, run)
    if newest is None:
        raise NotFound("no run yet", hint="`rook sling TASK` begins one")
    return newest


def identity(ctx: Context, name: str) -> Identity:
    """What an agent has been and done, over all its sessions."""
    db = ctx.db
    find(db, name)
    sessions = store.of_agent(db, name)
    titles = _titles(db, sessions)
    recent: list[dict[str, str | None]] = [
        {
            "session_id": session.id,
            "task_id": session.task_id,
            "title": titles.get(session.task_id or ""),
            "outcome": session.outcome,
            "ended_at": session.ended_at,
        }
        for session in reversed(sessions)
    ]
    return Identity(
        name,
        tuple(dict.fromkeys(session.role for session in sessions)),
        len(sessions),
        sum(session.outcome == COMPLETED for session in sessions),
        sessions[0].created_at,
        sessions[-1].active_at,
        _domains(ctx, name),
        tuple(recent[:_RECENT]),
    )


def _domains(ctx: Context, name: str) -> tuple[str, ...]:
    """The folders of the files that an agent has changed, the most frequent first."""
    with open_telemetry(ctx) as telemetry:
        changed = {} if telemetry is None else telemetry.changed_files(name)
    counts: Counter[str] = Counter()
    for file, times in changed.items():
        counts["/".join(file.split("/")[:-1][:_DOMAIN_DEPTH]) or "."] += times
    return tuple(sorted(counts, key=lambda folder: (-counts[folder], folder))[:_MOST_DOMAINS])


def run_report(ctx: Context, run: Run) -> RunReport:
    """A run with all agents that were slung in it, and what was spent on it."""
    agents = status(ctx, ended=True, run_id=run.id)
    spent = sum_up(ctx.db, "run", agent=None, run=run.id, since=None)
    return RunReport(run, tuple(agents), spent.total.dollars)


def _statuses(db: Database, sessions: Collection[Session]) -> list[AgentStatus]:
    used = spent(db, [session.id for session in sessions])
    titles = _titles(db, sessions)
    return [
        AgentStatus(
            **{name: getattr(session, name) for name in _OF_SESSION},
            session_id=session.id,
            sandbox=session.settings.sandbox,
            task_title=titles.get(session.task_id or ""),
            since=_since(db, session),
            unread=mail_store.count_unread(db, session.agent),
            turns=used.get(session.id, Spent()).turns,
            dollars=used.get(session.id, Spent()).dollars,
        )
        for session in sessions
    ]


def _since(db: Database, session: Session) -> str:
    """When a session came into its state: its turns begin and end work, and its end is recorded."""
    if session.ended_at is not None:
        return session.ended_at
    turn = store.last_turn(db, session.id) if session.state in (WORKING, WAITING) else None
    if turn is None:
        return session.created_at if session.state in (BOOTING, WORKING) else session.updated_at
    return turn.started_at if session.state == WORKING else turn.ended_at or session.updated_at


def _titles(db: Database, sessions: Collection[Session]) -> dict[str, str]:
    """The titles of the tasks that sessions were slung for, by their ids."""
    wanted = {session.task_id for session in sessions if session.task_id}
    return {task.id: task.title for task in tasks.get_many(db, wanted).values()}
