"""Agents that the database says are alive, without a process or a worktree: for calls of `rook` as one of them."""

from __future__ import annotations

from pathlib import Path

from rookery.agents.reservation import Request, reserve
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import READY, Settings
from support import add


class Agent:
    """An agent with a session, a task and a token, and no process."""

    def __init__(
        self,
        root: Path,
        name: str,
        role: str = "builder",
        *,
        under: Agent | None = None,
        tools: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.root = root
        db = Database.open(database_path(str(root)))
        ctx = Context.at(str(root), db, load_config(str(root), read_environ({}), {}).config)
        self.role = role
        self.task: str = add(db, f"work of {name}", None if under is None else under.task)
        parent = None if under is None else under.name
        asked = Request(self.task, role, "human", "0" * 40, name=name, mode="tmux", parent=parent)
        session = reserve(ctx, asked.replace(settings=Settings(tools=tools)))
        self.worktree = session.worktree
        without = {"runner_pid": None, "runner_start": None}
        with db.write():
            store.change_session(db, session, "", actor=name, at=ctx.now(), move="begin turn", step=READY, **without)
        db.close()
        self.session_id = session.id
        token = (root / ".rookery" / "sessions" / session.id / "token").read_text()
        self.env = {
            "ROOKERY_ROOT": str(root),
            "ROOKERY_AGENT": name,
            "ROOKERY_SESSION": session.id,
            "ROOKERY_TOKEN": token,
        }

    def end(self) -> None:
        """End its session."""
        db = Database.open(database_path(str(self.root)))
        with db.write():
            db.execute("UPDATE sessions SET state = 'ended' WHERE id = ?", (self.session_id,))
        db.close()
