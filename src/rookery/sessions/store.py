"""The tables of sessions, turns and runs. A change and its event commit together.

Paths of worktrees and specifications are relative to the project's root in the table and in events, and absolute in a
`Session`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.errors import InvalidId, InvalidState, NotFound
from rookery.base.ids import RUN, TASK, resolve_id
from rookery.base.json import dumps, loads
from rookery.base.page import rows_for
from rookery.config.project import from_stored, root_of, to_stored
from rookery.db.database import Database, Row
from rookery.db.dialect import equals, ids_between, marks
from rookery.events.store import publish
from rookery.sessions.model import (
    ALL_WORK,
    ENDED,
    FAILED,
    Hold,
    NoSuchAgent,
    Run,
    Session,
    Settings,
    Turn,
    next_state,
)
from rookery.tasks import store as tasks

_SESSION = ", ".join(Session.field_names())
_TURN = ", ".join(Turn.field_names())
_RUN = "id, title, started_by, created_at, completed_at"
_RUNS = (
    f"SELECT {', '.join(f'r.{column}' for column in _RUN.split(', '))}, count(DISTINCT s.agent), "
    "count(CASE WHEN s.state <> 'ended' THEN 1 END) AS alive, max(s.ended_at) "
    "FROM runs r LEFT JOIN sessions s ON s.run_id = r.id"
)


def insert_session(db: Database, session: Session, *, actor: str, at: str) -> None:
    """Reserve a session for an agent."""
    root = root_of(db.path)
    stored = session.replace(worktree=to_stored(root, session.worktree), settings=_stored(root, session.settings))
    values = stored.as_dict() | {"settings": dumps(stored.settings.as_dict()), "hold": _text_of(stored.hold)}
    db.execute(f"INSERT INTO sessions ({_SESSION}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))
    publish(db, "agent.reserved", session.agent, {"session": stored.to_json()}, actor=actor, at=at)


def change_session(
    db: Database, session: Session, kind: str = "", *, actor: str = "", at: str = "", move: str = "", **changes: Any
) -> Session:
    """Change a session that is still as the caller saw it, and publish an event of that kind, if any.

    Its state changes only by a step of the table, `move`; raises InvalidState where that does not allow it. Raises
    LookupError if the session has changed meanwhile. Without `actor`, the agent itself did it.
    """
    if "state" in changes:
        raise TypeError("a state changes by a step of the table")
    if move:
        changes["state"] = next_state(move, session)
    changes["updated_at"] = at = at or session.updated_at
    stored = dict(changes)
    if "settings" in changes:
        stored["settings"] = dumps(_stored(root_of(db.path), changes["settings"]).as_dict())
    if "hold" in changes:
        stored["hold"] = _text_of(changes["hold"])
    if "worktree" in changes:
        stored["worktree"] = to_stored(root_of(db.path), changes["worktree"])
    columns = ", ".join(f"{name} = ?" for name in stored)
    db.execute(
        f"UPDATE sessions SET {columns} WHERE id = ? AND state = ? AND step = ?",
        (*stored.values(), session.id, session.state, session.step),
    )
    if db.changed != 1:
        raise LookupError(f"{session.agent} is no longer {session.state}")
    if kind:
        published = {name: value for name, value in stored.items() if name not in ("token_hash", "settings")}
        data = {"session_id": session.id, "set": published}
        publish(db, kind, session.agent, data, actor=actor or session.agent, at=at)
    return session.replace(**changes)


def session(db: Database, session_id: str) -> Session:
    """The session with that id, which the caller knows to exist."""
    session = next(_sessions(db, "id = ?", session_id), None)
    if session is None:
        raise LookupError(session_id)
    return session


def worktrees_outside(db: Database, folder: str) -> list[str]:
    """Every worktree that a session has or had, but those in a folder, which is named as the state keeps it."""
    rows = db.all(
        "SELECT DISTINCT worktree FROM sessions WHERE worktree NOT LIKE ? ORDER BY worktree", (f"{folder}/%",)
    )
    return [from_stored(root_of(db.path), path) for (path,) in rows if path]


def living(db: Database, agent: str) -> Session | None:
    """The agent's present session, if it has one."""
    return next(_sessions(db, "agent = ? AND state <> 'ended'", agent), None)


def latest(db: Database, agent: str) -> Session | None:
    """The agent's present session, or its last; a sling that failed counts only if there is nothing else."""
    order = "CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END, seq DESC"
    return next(_sessions(db, f"agent = ? ORDER BY {order} LIMIT 1", agent), None)


def task_named(db: Database, text: str) -> str:
    """The task that the text names by its id, or by the agent that worked on it last; its whole id."""
    session = latest(db, text)
    if session is not None and session.task_id is not None:
        return session.task_id
    try:
        return tasks.resolve(db, text)
    except (InvalidId, NotFound) as error:
        if text.lower().startswith(f"{TASK}_"):
            raise
        raise type(error)(error.message, hint=ALL_WORK) from None


def of_agent(db: Database, agent: str) -> list[Session]:
    """All sessions of an agent, in order, without slings that failed unless there is nothing else."""
    return _without_failed(sessions(db, agent=agent))


def of_branch(db: Database, branch: str) -> list[Session]:
    """All sessions that worked on a branch, in order, without slings that failed unless there is nothing else."""
    return _without_failed(sessions(db, branch=branch))


def _without_failed(sessions: list[Session]) -> list[Session]:
    return [session for session in sessions if session.outcome != FAILED] or sessions


def leaders(db: Database, agent: str) -> Iterator[str]:
    """The agent that an agent answers to, the one that this answers to, and so on."""
    seen: set[str] = set()
    session = latest(db, agent)
    while session is not None and session.parent not in seen:
        yield session.parent
        seen.add(session.parent)
        session = latest(db, session.parent)


def find_living(db: Database, agent: str) -> Session:
    """The agent's present session; raises NoSuchAgent, or InvalidState if it has ended."""
    session = latest(db, agent)
    if session is None:
        raise NoSuchAgent(f"no agent {agent}", hint="`rook status` lists the living agents")
    if not session.is_alive:
        raise InvalidState(f"{agent} has ended", hint=f"`rook resume {agent}` starts it again")
    return session


def living_in_turn(db: Database, session_id: str) -> tuple[Session, str | None] | None:
    """A session that has not ended, with its running turn: by one query, as every hook asks for it."""
    row = db.one(
        f"SELECT (SELECT id FROM turns WHERE session_id = sessions.id AND state = 'running'), {_SESSION} "
        "FROM sessions WHERE id = ? AND state <> 'ended'",
        (session_id,),
    )
    return None if row is None else (_session(db, row[1:]), row[0])


def sessions(db: Database, *, alive: bool = False, **wanted: str | None) -> list[Session]:
    """Sessions in the order in which they began: all, or those with these values in their columns."""
    where, values = _where(alive, wanted)
    return list(_sessions(db, f"{where} ORDER BY seq", *values))


def sessions_ended_since(db: Database, at: str) -> list[Session]:
    """The sessions that have ended since a time, in the order in which they began."""
    return list(_sessions(db, "state = 'ended' AND ended_at >= ? ORDER BY seq", at))


def children(db: Database, session: Session) -> list[Session]:
    """The sessions that this one, and no earlier one of its agent, has slung, in the order in which they began."""
    began = "(SELECT seq FROM sessions WHERE id = ?)"
    return list(_sessions(db, f"parent = ? AND seq > {began} ORDER BY seq", session.agent, session.id))


def count(db: Database, *, alive: bool = False, **wanted: str | None) -> int:
    """How many sessions there are, by the same conditions."""
    where, values = _where(alive, wanted)
    return int(db.value(f"SELECT count(*) FROM sessions WHERE {where}", values))


def _where(alive: bool, wanted: dict[str, str | None]) -> tuple[str, list[object]]:
    conditions, values = equals(wanted)
    return " AND ".join([*conditions, "state <> 'ended'" if alive else "1 = 1"]), values


def newest(db: Database, limit: int) -> list[Session]:
    """The sessions that began last, the newest first; 0 for all."""
    return list(_sessions(db, "1 = 1 ORDER BY seq DESC LIMIT ?", limit or -1))


def agent_names(db: Database) -> list[str]:
    """The names of all agents that are or were here."""
    return [row[0] for row in db.all("SELECT DISTINCT agent FROM sessions ORDER BY agent")]


def insert_turn(db: Database, turn: Turn, agent: str, *, at: str) -> None:
    """A turn begins."""
    db.execute(f"INSERT INTO turns ({_TURN}) VALUES ({', '.join('?' * len(Turn.field_names()))})", turn.as_tuple())
    data = {"turn_id": turn.id, "number": turn.number, "cause": turn.cause, "session_id": turn.session_id}
    publish(db, "turn.started", agent, data, actor=agent, at=at)


def change_turn(db: Database, turn: Turn, **changes: Any) -> Turn:
    """Change a turn that is still in the state in which the caller saw it; raises LookupError otherwise."""
    columns = ", ".join(f"{name} = ?" for name in changes)
    db.execute(f"UPDATE turns SET {columns} WHERE id = ? AND state = ?", (*changes.values(), turn.id, turn.state))
    if db.changed != 1:
        raise LookupError(f"{turn.id} is no longer {turn.state}")
    return turn.replace(**changes)


def find_turn(db: Database, turn_id: str) -> Turn | None:
    """The turn with that id, if there is one."""
    return next(_turns(db, "id = ?", turn_id), None)


def turn(db: Database, turn_id: str) -> Turn:
    """The turn with that id, which the caller knows to exist."""
    turn = find_turn(db, turn_id)
    if turn is None:
        raise LookupError(turn_id)
    return turn


def last_number(db: Database, session_id: str) -> int:
    """The number of a session's last turn; 0 before its first."""
    return int(db.value("SELECT coalesce(max(number), 0) FROM turns WHERE session_id = ?", (session_id,)))


def turns(db: Database, session_id: str) -> list[Turn]:
    """A session's turns, in order."""
    return list(_turns(db, "session_id = ? ORDER BY number", session_id))


def last_turn(db: Database, session_id: str) -> Turn | None:
    """The newest turn of a session."""
    return next(_turns(db, "session_id = ? ORDER BY number DESC LIMIT 1", session_id), None)


def running_turn(db: Database, session_id: str) -> Turn | None:
    """The turn that is under way."""
    return next(_turns(db, "session_id = ? AND state = 'running'", session_id), None)


def running_turns(db: Database) -> list[Turn]:
    """Every turn that is under way."""
    return list(_turns(db, "state = 'running'"))


def _turns(db: Database, condition: str, *values: object) -> Iterator[Turn]:
    return (Turn(*row) for row in db.all(f"SELECT {_TURN} FROM turns WHERE {condition}", values))


def turn_ids(db: Database, session_id: str) -> list[str]:
    """The ids of a session's turns."""
    return [row[0] for row in db.all("SELECT id FROM turns WHERE session_id = ?", (session_id,))]


def delete_ended(db: Database, session_ids: list[str], *, actor: str, at: str) -> None:
    """Delete sessions that have ended, with their turns. The caller has deleted what these used."""
    for session_id in session_ids:
        for table in ("turns", "port_blocks", "identities_due"):
            db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
        db.execute("DELETE FROM sessions WHERE id = ? AND state = ?", (session_id, ENDED))
    if session_ids:
        publish(db, "sessions.cleaned", "sessions", {"sessions": session_ids}, actor=actor, at=at)


def insert_run(db: Database, run: Run) -> None:
    """A run begins."""
    values = (run.id, run.title, run.started_by, run.created_at, run.completed_at)
    db.execute(f"INSERT INTO runs ({_RUN}) VALUES ({marks(len(values))})", values)
    publish(db, "run.started", run.id, {"title": run.title}, actor=run.started_by, at=run.created_at)


def complete_run(db: Database, run: Run, *, actor: str, at: str) -> Run:
    """A run's goal is reached."""
    db.execute("UPDATE runs SET completed_at = ? WHERE id = ? AND completed_at IS NULL", (at, run.id))
    publish(db, "run.completed", run.id, {}, actor=actor, at=at)
    return run.replace(completed_at=at)


def find_run(db: Database, text: str) -> Run:
    """The run that the text names, whole or by a part of it; raises NotFound, or why the text is no id."""
    return run(db, resolve_id(RUN, text, ids_between(db, "runs"), lambda one: run(db, one).title))


def run(db: Database, run_id: str) -> Run:
    """The run with that id, which the caller knows to exist."""
    for known in _runs(db, "WHERE r.id = ?", "", run_id):
        return known
    raise LookupError(run_id)


def newest_run(db: Database) -> Run | None:
    """The newest run that is under way, else the newest of all."""
    return next(_runs(db, "", "ORDER BY alive = 0, r.seq DESC LIMIT 1"), None)


def uncompleted_runs(db: Database) -> list[Run]:
    """The runs of which no one has said that they are completed, the newest first."""
    return list(_runs(db, "WHERE r.completed_at IS NULL", "ORDER BY r.seq DESC"))


def runs(db: Database, *, limit: int = 0, cursor: str | None = None) -> list[Run]:
    """One page of runs, the newest first, and the first run after the page."""
    last = None if cursor is None else find_run(db, cursor).id
    where, values = ("", ()) if last is None else ("WHERE r.seq < (SELECT seq FROM runs WHERE id = ?)", (last,))
    return list(_runs(db, where, "ORDER BY r.seq DESC LIMIT ?", *values, rows_for(limit)))


def _runs(db: Database, where: str, order: str, *values: object) -> Iterator[Run]:
    for row in db.all(f"{_RUNS} {where} GROUP BY r.seq {order}", values):
        known = Run(*row)
        yield known.replace(ended_at=None) if known.alive else known


def note_identity(db: Database, agent: str, session_id: str) -> None:
    """The agent's identity file is out of date: that session has ended."""
    db.execute(
        "INSERT INTO identities_due (agent, session_id) VALUES (?, ?) "
        "ON CONFLICT (agent) DO UPDATE SET session_id = excluded.session_id",
        (agent, session_id),
    )


def identities_due(db: Database) -> dict[str, str]:
    """The agents whose identity files are out of date, and the session that ended last."""
    return dict(db.all("SELECT agent, session_id FROM identities_due ORDER BY agent"))


def forget_identity(db: Database, agent: str, session_id: str) -> None:
    """The file tells of that session; if another one has ended meanwhile, it is still out of date."""
    db.execute("DELETE FROM identities_due WHERE agent = ? AND session_id = ?", (agent, session_id))


def lease_ports(db: Database, session_id: str, first: int, count: int, last: int) -> tuple[int, int] | None:
    """A free block of ports for a session, or None if all are taken."""
    db.execute("DELETE FROM port_blocks WHERE session_id IN (SELECT id FROM sessions WHERE state = ?)", (ENDED,))
    taken = {row[0] for row in db.all("SELECT first FROM port_blocks")}
    start = next((start for start in range(first, last - count + 2, count) if start not in taken), None)
    if start is None:
        return None
    db.execute("INSERT INTO port_blocks (first, count, session_id) VALUES (?, ?, ?)", (start, count, session_id))
    return start, count


def _sessions(db: Database, condition: str, *values: object) -> Iterator[Session]:
    return (_session(db, row) for row in db.all(f"SELECT {_SESSION} FROM sessions WHERE {condition}", values))


def _session(db: Database, row: Row) -> Session:
    values = dict(zip(Session.field_names(), row, strict=True))
    root = root_of(db.path)
    values["worktree"] = from_stored(root, values["worktree"])
    settings = loads(values["settings"])
    if settings["spec"] is not None:
        settings["spec"] = from_stored(root, settings["spec"])
    for name in ("files", "siblings", "ports", "tools", "ends_with", "replaced"):
        if settings.get(name) is not None:
            settings[name] = tuple(settings[name])
    hold = None if values["hold"] is None else Hold(**loads(values["hold"]))
    return Session(**(values | {"settings": Settings(**settings), "hold": hold}))


def _text_of(hold: Hold | None) -> str | None:
    return None if hold is None else dumps(hold.as_dict())


def _stored(root: str, settings: Settings) -> Settings:
    return settings if settings.spec is None else settings.replace(spec=to_stored(root, settings.spec))
