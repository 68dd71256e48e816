"""What an operation may use. Everything is opened on first use, so that a command pays only for what it touches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rookery.base.call import current_folder, stderr
from rookery.base.clock import Clock, stamp
from rookery.base.errors import NoRepository, NotInitialised
from rookery.config import layout
from rookery.config.environ import HUMAN, Environ, now, read_environ
from rookery.config.loader import read_config
from rookery.config.model import Config
from rookery.db.database import Database
from rookery.ops.caller import prove
from rookery.ops.location import take_notice
from rookery.ops.model import Caller
from rookery.ops.state import open_here
from rookery.ops.state_owner import find_project
from rookery.terminal.tmux import socket_path
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import is_bare, open_vcs
from rookery.vcs.git.checkout import Git

Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(eq=False)
class Context:
    """One caller's view of one project."""

    cwd: str = field(default_factory=current_folder)
    environ: Environ = field(default_factory=read_environ)
    flags: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = now
    is_interactive: bool = False
    only_reads: bool = False
    """True for an operation that only reads: its database refuses every change."""
    progress: Progress = lambda _label, _total: lambda _done: None
    react: Callable[[], None] = lambda: None
    """Has the loop look once, for an operation that goes on for long."""
    follow: Callable[[str], None] = lambda _text: None
    """Called with what long work prints, as it comes; for people who watch."""
    _root: str | None = field(default=None, init=False)
    _db: Database | None = field(default=None, init=False)
    _config: Config | None = field(default=None, init=False)
    _caller: Caller | None = field(default=None, init=False)

    @classmethod
    def at(cls, root: str, db: Database, config: Config | None = None, clock: Clock = now) -> Context:
        """The project itself at work, on state that is open already and that its opener closes."""
        ctx = cls(cwd=root, clock=clock)
        ctx._root, ctx._db, ctx._config = root, db, config
        return ctx

    @property
    def caller(self) -> Caller:
        """Who is calling, proved at the first use; raises ForgedSender. The state is opened only for an agent."""
        if self._caller is None:
            self._caller = prove(self.environ, lambda: self.db)
        return self._caller

    @property
    def actor(self) -> str:
        """The proved name of who is calling: an agent's, or `human`."""
        return self.caller.name

    @property
    def root(self) -> str:
        """The project's root; raises NotInitialised, and UntrustedState before anything of it is opened."""
        if self._root is None:
            self._root = find_project(self.cwd, self.environ.root)
        return self._root

    @property
    def db(self) -> Database:
        """The project's database, opened and at the current schema; a copied or moved project is settled first."""
        if self._db is None:
            self._db = open_here(self.root)
            self._show_notice()
            if self.only_reads:
                self._db.only_read()
        return self._db

    def _show_notice(self) -> None:
        """Tell a person, once, that the project was copied or moved and what was done about it."""
        is_person = self.environ.agent == HUMAN and self.environ.token is None and not self.environ.is_confined
        text = take_notice(self.root) if is_person else ""
        if text:
            stderr().write(f"rook: {text}\n")

    @property
    def has_database(self) -> bool:
        """True if the state was asked for."""
        return self._db is not None

    @property
    def config(self) -> Config:
        """The project's configuration; outside a project, what the user, the environment and the flags say."""
        if self._config is None:
            self._config = read_config(self.root_if_any, self.environ, self.flags)
        return self._config

    @property
    def root_if_any(self) -> str | None:
        """The project's root, None outside a project. A project that the environment names must be there."""
        try:
            return self.root
        except NotInitialised:
            if self.environ.root is not None:
                raise
            return None

    def vcs(self) -> Vcs:
        """The checkout that the caller stands in; raises NoRepository."""
        return open_vcs(self.cwd, self.config.vcs)

    def repository(self) -> Vcs:
        """The project's repository, also where it has no checkout of its own; raises NoRepository."""
        try:
            return open_vcs(self.root, self.config.vcs)
        except NoRepository:
            if not is_bare(self.root):
                raise
            return Git(os.path.realpath(self.root), self.config.vcs.timeout)

    def now(self) -> str:
        """The time, as it is written in records."""
        return stamp(self.clock())

    def path(self, *parts: str) -> str:
        """A path under `.rookery/`."""
        return layout.path(self.root, *parts)

    def session_folder(self, session_id: str) -> str:
        """The private folder of a session: its token, logs and the runtime's own state."""
        return layout.session_path(self.root, session_id)

    def runtime_folder(self, session_id: str) -> str:
        """The part of it that is the agent program's own."""
        return layout.session_path(self.root, session_id, layout.SESSION_RUNTIME)

    @property
    def tmux_socket(self) -> str:
        """Where the private tmux listens."""
        return socket_path(self.root)

    def close(self) -> None:
        """Let go of what was opened."""
        if self._db is not None:
            self._db.close()
            self._db = None
