"""What every part of an agent's life needs: the project's root, state, settings and time."""

from __future__ import annotations

import os
import sys

from rookery.base.clock import Clock, stamp
from rookery.base.json import loads
from rookery.config.environ import now
from rookery.config.model import Config
from rookery.db.database import Database
from rookery.environment.service import project_environ
from rookery.ops.context import Context
from rookery.processes.proctable import MARK as MARK
from rookery.sessions.model import Session
from rookery.terminal.tmux import socket_path

CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "client", "bin")
"""Where the `rook` of agents lies."""


class Home:
    """A project, as agents live in it."""

    def __init__(self, root: str, db: Database, config: Config, clock: Clock = now) -> None:
        self.root = root
        self.db = db
        self.config = config
        self.clock = clock

    @classmethod
    def of(cls, ctx: Context) -> Home:
        """The home of an operation's caller."""
        return cls(ctx.root, ctx.db, ctx.config, ctx.clock)

    def now(self) -> str:
        """The time, as it is written in records."""
        return stamp(self.clock())

    def path(self, *parts: str) -> str:
        """A path beneath `.rookery/`."""
        return os.path.join(self.root, ".rookery", *parts)

    def folder(self, session_id: str) -> str:
        """The private folder of a session: its token, logs and the runtime's own state."""
        return self.path("sessions", session_id)

    def runtime_folder(self, session_id: str) -> str:
        """The part of it that is the agent program's own."""
        return os.path.join(self.folder(session_id), "runtime")

    @property
    def tmux_socket(self) -> str:
        """Where the private tmux listens."""
        return socket_path(self.root)


def write_token(home: Home, session_id: str) -> str:
    """Make an agent's token, readable by its user alone, and return it."""
    token = os.urandom(24).hex()
    os.makedirs(home.folder(session_id), mode=0o700, exist_ok=True)
    handle = os.open(_token_path(home, session_id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(token)
    return token


def agent_environ(home: Home, session: Session, provided: dict[str, str]) -> dict[str, str]:
    """The environment of everything that an agent runs. The mark by which its processes are found is in it."""
    with open(_token_path(home, session.id), encoding="ascii") as file:
        token = file.read()
    env = project_environ(home.root) | provided
    # `rook` must be the one that slung the agent, whatever else is on the path.
    own = [CLIENT, os.path.dirname(sys.executable)]
    env["PATH"] = os.pathsep.join([*own, *(each for each in env.get("PATH", "").split(os.pathsep) if each not in own)])
    return env | {
        "ROOKERY_PYTHON": sys.executable,
        "ROOKERY_ROOT": home.root,
        "ROOKERY_AGENT": session.agent,
        "ROOKERY_TOKEN": token,
        MARK: session.id,
    }


def provided_environ(home: Home, session: Session) -> dict[str, str]:
    """What provisioning gave the agent."""
    path = os.path.join(home.folder(session.id), "environment.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found: dict[str, str] = loads(file.read())
    return found


def _token_path(home: Home, session_id: str) -> str:
    return os.path.join(home.folder(session_id), "token")
