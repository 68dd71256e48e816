"""A project with agents as rows of the database: their sessions, their parents, their running turns."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rookery.base.clock import seconds_of
from rookery.base.ids import SESSION, TURN, new_id
from rookery.config.environ import Environ, read_environ
from rookery.config.layout import FOLDER
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.mail import service, store
from rookery.mail.model import Draft, Message, Sent
from rookery.ops.caller import prove
from rookery.ops.context import Context
from rookery.ops.model import PERSON, Caller
from rookery.processes.proctree import identify
from rookery.roles.catalog import builtin_roles
from rookery.sessions.model import Settings
from support import child_environ, run_rook
from templates import copy_database

NOW = "2026-01-31T12:00:00.000Z"
LATER = "2026-01-31T12:05:00.000Z"
HUMAN = PERSON
NOBODYS = read_environ({"HOME": "/nowhere"})
"""An environment that names no agent."""


class Agent(NamedTuple):
    """An agent of a test, and how it proves who it is."""

    name: str
    token: str
    session_id: str

    def variables(self, turn: str | None = None) -> dict[str, str]:
        """What its processes carry."""
        more = {} if turn is None else {"ROOKERY_TURN": turn}
        return {"ROOKERY_AGENT": self.name, "ROOKERY_TOKEN": self.token, **more}

    def environ(self, turn: str | None = None) -> Environ:
        """Its variables, as Rookery reads them."""
        return read_environ({"HOME": "/nowhere", **self.variables(turn)})


class Hive:
    """A project and its agents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / FOLDER).mkdir(parents=True)
        self.path = database_path(str(folder))
        copy_database(self.path)
        self.db = Database.open(self.path)

    def add(self, name: str, role: str = "builder", parent: str = "human", state: str = "working") -> Agent:
        """Add an agent with a session."""
        session_id, token = new_id(SESSION), f"token-of-{name}-{new_id(SESSION)}"
        row: dict[str, object] = {
            "id": session_id,
            "agent": name,
            "role": role,
            "run_id": "run_1",
            "parent": parent,
            "depth": 0,
            "runtime": "scripted",
            "model": "",
            "mode": "tmux",
            "profile": "strict",
            "state": state,
            "step": "ready",
            "worktree": "",
            "branch": "",
            "base_commit": "",
            "settings": json.dumps(Settings(ends_with=builtin_roles()[role].ends_with).as_dict()),
            "token_hash": hashlib.sha256(token.encode()).hexdigest(),
            "created_at": NOW,
            "updated_at": NOW,
            "active_at": NOW,
        }
        # The test's own process counts as the program in the agent's terminal, so that no command begins a turn for it.
        me = identify(os.getpid())
        assert me is not None
        row |= {"runner_pid": me.pid, "runner_start": me.start}
        marks = ", ".join("?" * len(row))
        with self.db.write():
            self.db.execute(f"INSERT INTO sessions ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        return Agent(name, token, session_id)

    def end(self, agent: Agent) -> None:
        """End the agent's session."""
        with self.db.write():
            self.db.execute("UPDATE sessions SET state = 'ended' WHERE id = ?", (agent.session_id,))

    def as_(self, agent: Agent, turn: str | None = None) -> Caller:
        """The agent as a caller, proved by its environment."""
        return prove(agent.environ(turn), lambda: self.db)

    def ctx(self, agent: Agent | None = None, turn: str | None = None, now: str = NOW) -> Context:
        """What an operation runs in that the agent or, without one, a person calls."""
        ctx = Context.at(str(self.folder), self.db, clock=lambda: seconds_of(now))
        ctx.environ = NOBODYS if agent is None else agent.environ(turn)
        return ctx

    def begin_turn(self, agent: Agent) -> str:
        """Begin a turn of the agent."""
        turn_id = new_id(TURN)
        with self.db.write():
            self.db.execute(
                "INSERT INTO turns (id, session_id, number, cause, state, started_at) "
                "SELECT ?, ?, count(*) + 1, 'mail', 'running', ? FROM turns WHERE session_id = ?",
                (turn_id, agent.session_id, NOW, agent.session_id),
            )
        return turn_id

    def end_turn(self, turn_id: str, state: str = "done") -> None:
        """End the turn; the test decides what becomes of its mail."""
        with self.db.write():
            self.db.execute("UPDATE turns SET state = ? WHERE id = ?", (state, turn_id))

    def settle(self, turn_id: str, now: str, *, read: bool = True) -> int:
        """What the turn has seen is read, or new again."""
        with self.db.write():
            return store.settle_turn(self.db, turn_id, read=read, now=now)

    def send(self, sender: Agent | None, to: str, subject: str = "hello", body: str = "", **more: Any) -> Sent:
        """A message from an agent or, from None, from a person."""
        caller = HUMAN if sender is None else self.as_(sender)
        return service.send(self.db, caller, Draft((to,), subject, body, **more), NOW)

    def get(self, sent: Sent) -> Message:
        """The message that was sent first."""
        return store.get(self.db, sent.id)

    def inbox(self, name: str) -> list[Message]:
        """Everything that an inbox ever got, oldest first."""
        return store.select(self.db, store.Query(recipient=name))[::-1]

    def everything(self) -> list[list[tuple[Any, ...]]]:
        """The whole stored state of mail, events included."""
        return [self.db.all(f"SELECT * FROM {table}") for table in ("messages", "mail_groups", "events")]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of one type."""
        rows = self.db.all("SELECT data FROM events WHERE type = ? ORDER BY seq", (kind,))
        return [json.loads(row[0]) for row in rows]

    def rook(self, *words: str, as_: Agent | None = None, stdin: bytes = b"", turn: str | None = None) -> Ran:
        """Run `rook` to its end as a process of its own."""
        ran = run_rook(self.folder, *words, stdin=stdin, env={} if as_ is None else as_.variables(turn))
        return Ran(ran.status, ran.out.decode(), ran.err.decode())

    def start_python(self, script: str, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a process that uses the code under test."""
        return subprocess.Popen(
            [sys.executable, "-c", script, self.path, *args],
            cwd=self.folder,
            env=child_environ(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


class Ran(NamedTuple):
    """Status and output of a `rook` process."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The data that a command with --json printed."""
        assert self.status == 0, self
        return json.loads(self.out)["data"]

    @property
    def code(self) -> str:
        """The error code that a command with --json printed."""
        assert self.status == 1, self
        return str(json.loads(self.out)["error"]["code"])
