"""A project with agents' worktrees for tests: a real repository, a real database, and sessions written by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rookery.base.ids import SESSION, TURN, new_id
from rookery.config.environ import read_environ
from rookery.config.project import database_path
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import ENDED, READY, Session, Settings, Turn
from rookery.vcs.backend import Vcs
from rookery.worktrees import service as worktrees
from support import child_environ
from templates import copy_database
from vcs.repositories import KINDS, Repository, find_jj


class Place:
    """One project."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.root = repository.path
        self.base = repository.begin()
        repository.write(".rookery/.gitignore", "*\n")
        copy_database(database_path(str(self.root)))
        self.flags: dict[str, str] = {}
        self.time = 1_800_000_000.0

    def context(self) -> Context:
        """A fresh context, as every command has one; the clock goes on by a second."""
        self.time += 1
        now = self.time
        return Context(cwd=str(self.root), environ=read_environ(), flags=self.flags, clock=lambda: now)

    def vcs(self) -> Vcs:
        """The main checkout."""
        return self.repository.vcs()

    def add(self, agent: str, *, state: str = ENDED, outcome: str | None = "completed") -> Agent:
        """An agent with a session and a worktree."""
        session = self.session(agent, state=state, outcome=outcome)
        worktrees.create(self.context(), session)
        self.insert(session)
        return Agent(self, session)

    def session(self, agent: str, *, state: str = ENDED, outcome: str | None = "completed") -> Session:
        """A session of an agent, which is not on record yet."""
        now = self.context().now()
        return Session(
            id=new_id(SESSION),
            agent=agent,
            role="builder",
            task_id=None,
            run_id="run",
            parent="human",
            depth=1,
            runtime="scripted",
            model="default",
            mode="headless",
            profile="yolo",
            state=state,
            outcome=outcome if state == ENDED else None,
            reason=None,
            step=READY,
            worktree=str(self.root / ".rookery" / "worktrees" / agent),
            branch=f"rook/{agent}/task",
            base_commit=self.base,
            settings=Settings(is_new=True),
            token_hash="",
            runner_pid=None,
            runner_start=None,
            runtime_session=None,
            created_at=now,
            updated_at=now,
            active_at=now,
            ended_at=now if state == ENDED else None,
        )

    def insert(self, session: Session) -> None:
        """Put a session on record."""
        ctx = self.context()
        with ctx.db.write() as db:
            store.insert_session(db, session, actor="human", at=session.created_at)
        ctx.close()


class Agent:
    """An agent in its worktree."""

    def __init__(self, place: Place, session: Session) -> None:
        self.place = place
        self.session = session
        self.name = session.agent
        self.path = Path(session.worktree)
        self.branch = session.branch
        self.folder = place.root / ".rookery" / "sessions" / session.id

    def vcs(self) -> Vcs:
        """Its worktree."""
        return self.place.repository.vcs(self.path)

    def put(self, name: str, text: str = "text\n") -> Path:
        """Write a file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def add_turn(self, number: int) -> None:
        """A turn that has ended."""
        ctx = self.place.context()
        with ctx.db.write() as db:
            turn = Turn(
                new_id(TURN), self.session.id, number, "mail", "done", None, None, 0, None, None, ctx.now(), ctx.now()
            )
            store.insert_turn(db, turn, self.name, at=ctx.now())
        ctx.close()


def make_place(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project in a repository of one kind."""
    if kind != "git":
        find_jj(monkeypatch)
    return Place(KINDS[kind](folder / "repo"))


def run_killed(code: str, kill_at: int, cwd: Path) -> int:
    """Run code in a process of its own that kills itself at the n-th step; returns how it ended."""
    env = child_environ({"ROOKERY_TEST_KILL": f":{kill_at}"})
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, timeout=120).returncode
