"""The tables of sessions, turns and runs. Every change says its event.

Paths of worktrees and specifications are kept relative to the project's root, in the table and in events. In a
`Session` they are absolute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rookery.base.json import dumps, loads
from rookery.config.project import from_stored, root_of, to_stored
from rookery.db.database import Database, Row
from rookery.events.store import publish
from rookery.sessions.model import ENDED, Run, Session, Settings, Turn, next_state

_SESSION = ", ".join(Session.field_names())
_TURN = ", ".join(Turn.field_names())
_RUN = ", ".join(Run.field_names())


def insert_session(db: Database, session: Session, *, actor: str, at: str) -> None:
    """Reserve a life for an agent."""
    root = root_of(db.path)
    stored = session.replace(worktree=to_stored(root, session.worktree), settings=_stored(root, session.settings))
    values = stored.as_dict() | {"settings": dumps(stored.settings.as_dict())}
    db.execute(f"INSERT INTO sessions ({_SESSION}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))
    publish(db, "agent.reserved", session.agent, {"session": stored.to_json()}, actor=actor, at=at)


def change_session(
    db: Database, session: Session, kind: str, *, actor: str, at: str, move: str = "", **changes: Any
) -> Session:
    """Change a life that is still as the caller saw it; raises LookupError otherwise.

    Its state changes only by a step of the table, `move`; raises InvalidState where that does not allow it.
    """
    if "state" in changes:
        raise TypeError("a state changes by a step of the table")
    if move:
        changes["state"] = next_state(move, session)
    changes["updated_at"] = at
    stored = dict(changes)
    if "settings" in changes:
        stored["settings"] = dumps(_stored(root_of(db.path), changes["settings"]).as_dict())
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
        told = {name: value for name, value in stored.items() if name not in ("token_hash", "settings")}
        publish(db, kind, session.agent, {"session_id": session.id, "set": told}, actor=actor, at=at)
    return session.replace(**changes)


def session(db: Database, session_id: str) -> Session:
    """The session with that id, which the caller knows to exist."""
    row = db.one(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (session_id,))
    if row is None:
        raise LookupError(session_id)
    return _session(db, row)


def living(db: Database, agent: str) -> Session | None:
    """The agent's present life, if it has one."""
    row = db.one(f"SELECT {_SESSION} FROM sessions WHERE agent = ? AND state <> 'ended'", (agent,))
    return None if row is None else _session(db, row)


def latest(db: Database, agent: str) -> Session | None:
    """The agent's present life, or its last."""
    row = db.one(f"SELECT {_SESSION} FROM sessions WHERE agent = ? ORDER BY seq DESC LIMIT 1", (agent,))
    return None if row is None else _session(db, row)


def sessions(
    db: Database,
    *,
    alive: bool = False,
    run_id: str | None = None,
    agent: str | None = None,
    branch: str | None = None,
) -> list[Session]:
    """Sessions in the order in which they began."""
    where, values = ["1 = 1"], []  # type: tuple[list[str], list[object]]
    if alive:
        where.append("state <> 'ended'")
    for column, value in (("run_id", run_id), ("agent", agent), ("branch", branch)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    return [
        _session(db, row)
        for row in db.all(f"SELECT {_SESSION} FROM sessions WHERE {' AND '.join(where)} ORDER BY seq", values)
    ]


def children(db: Database, agent: str, *, alive: bool = True) -> list[Session]:
    """The lives that an agent has slung."""
    condition = " AND state <> 'ended'" if alive else ""
    return [
        _session(db, row)
        for row in db.all(f"SELECT {_SESSION} FROM sessions WHERE parent = ?{condition} ORDER BY seq", (agent,))
    ]


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


def turn(db: Database, turn_id: str) -> Turn:
    """The turn with that id, which the caller knows to exist."""
    row = db.one(f"SELECT {_TURN} FROM turns WHERE id = ?", (turn_id,))
    if row is None:
        raise LookupError(turn_id)
    return Turn(*row)


def last_number(db: Database, session_id: str) -> int:
    """The number of a life's last turn; 0 before its first."""
    return int(db.value("SELECT coalesce(max(number), 0) FROM turns WHERE session_id = ?", (session_id,)))


def turns(db: Database, session_id: str) -> list[Turn]:
    """A life's turns, in order."""
    return [
        Turn(*row) for row in db.all(f"SELECT {_TURN} FROM turns WHERE session_id = ? ORDER BY number", (session_id,))
    ]


def running_turn(db: Database, session_id: str) -> Turn | None:
    """The turn that is under way."""
    row = db.one(f"SELECT {_TURN} FROM turns WHERE session_id = ? AND state = 'running'", (session_id,))
    return None if row is None else Turn(*row)


def insert_run(db: Database, run: Run) -> None:
    """A run begins."""
    db.execute(f"INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?)", run.as_tuple())
    publish(db, "run.started", run.id, {"title": run.title}, actor=run.started_by, at=run.created_at)


def complete_run(db: Database, run: Run, *, actor: str, at: str) -> Run:
    """A run is over."""
    db.execute("UPDATE runs SET completed_at = ? WHERE id = ? AND completed_at IS NULL", (at, run.id))
    publish(db, "run.completed", run.id, {}, actor=actor, at=at)
    return run.replace(completed_at=at)


def open_run(db: Database) -> Run | None:
    """The run that is under way."""
    row = db.one(f"SELECT {_RUN} FROM runs WHERE completed_at IS NULL ORDER BY seq DESC LIMIT 1")
    return None if row is None else Run(*row)


def runs(db: Database) -> list[Run]:
    """All runs, newest first."""
    return [Run(*row) for row in db.all(f"SELECT {_RUN} FROM runs ORDER BY seq DESC")]


def add_usage(db: Database, turn_id: str, usage: Sequence[dict[str, Any]]) -> None:
    """What a turn used, by model."""
    for each in usage:
        db.execute(
            "INSERT INTO turn_usage (turn_id, model, input, output, cache_read, cache_write, cost_micros) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (turn_id, model) DO UPDATE SET input = input + excluded.input, "
            "output = output + excluded.output, cache_read = cache_read + excluded.cache_read, "
            "cache_write = cache_write + excluded.cache_write, cost_micros = cost_micros + excluded.cost_micros",
            (
                turn_id,
                each["model"],
                each["input"],
                each["output"],
                each["cache_read"],
                each["cache_write"],
                each["cost_micros"],
            ),
        )


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
    """A free block of ports for a life, or None if all are taken."""
    db.execute("DELETE FROM port_blocks WHERE session_id IN (SELECT id FROM sessions WHERE state = ?)", (ENDED,))
    taken = {row[0] for row in db.all("SELECT first FROM port_blocks")}
    for start in range(first, last - count + 2, count):
        if start not in taken:
            db.execute(
                "INSERT INTO port_blocks (first, count, session_id) VALUES (?, ?, ?)", (start, count, session_id)
            )
            return start, count
    return None


def _session(db: Database, row: Row) -> Session:
    values = dict(zip(Session.field_names(), row, strict=True))
    root = root_of(db.path)
    values["worktree"] = from_stored(root, values["worktree"])
    settings = loads(values["settings"])
    if settings["spec"] is not None:
        settings["spec"] = from_stored(root, settings["spec"])
    for name in ("files", "siblings", "ports", "tools", "ends_with"):
        if settings.get(name) is not None:
            settings[name] = tuple(settings[name])
    return Session(**(values | {"settings": Settings(**settings)}))


def _stored(root: str, settings: Settings) -> Settings:
    return settings if settings.spec is None else settings.replace(spec=to_stored(root, settings.spec))
