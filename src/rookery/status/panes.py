"""Waiting for something to happen to any agent: the panes of all interactive ones through one tmux client.

A program that dies in its terminal is seen at once, and the loop ends its session. What the others show is read without
a process each.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rookery.base.errors import ProgramFailed
from rookery.db.commits import Commits
from rookery.ops.context import Context
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.terminal.tmux import Tmux
from rookery.terminal.watch import Watcher

_SHORTEST_SECONDS = 0.3
"""The least time between two looks, and the most while terminals are watched: they report only their own changes."""
_LONGEST_SECONDS = 60.0


class StatusWatch:
    """One person's view of all agents, for as long as they watch."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watcher: Watcher | None = None
        self._commits = Commits(ctx.db.path, rest=_SHORTEST_SECONDS)

    def wait(self, longest: float = _LONGEST_SECONDS) -> None:
        """Return when something may have changed, or after so many seconds; the loop ends sessions that have died."""
        watcher = self._open()
        if watcher is None:
            self._commits.wait(longest)
            return
        try:
            changes = watcher.wait(min(longest, _SHORTEST_SECONDS))
        except ProgramFailed:
            changes = []  # the last terminal has ended, and the server with it
            self.close()
        if self._watcher is None or any(change.kind != "output" for change in changes):
            self._ctx.react()

    def screens(self) -> dict[str, str]:
        """What each interactive agent's terminal shows, by the agent's name."""
        watcher = self._open()
        if watcher is None:
            return {}
        names = {session.terminal: session.agent for session in self._interactive()}
        try:
            return {names[name]: screen for name, screen in watcher.capture_all(names).items()}
        except ProgramFailed:
            self.close()
            return {}

    def close(self) -> None:
        """Close the client; no agent notices."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        self._commits.close()

    def _interactive(self) -> list[Session]:
        return store.sessions(self._ctx.db, alive=True, mode=TMUX)

    def _open(self) -> Watcher | None:
        """The client, as long as there is a terminal to watch."""
        if self._watcher is not None and self._watcher.is_open:
            return self._watcher
        self.close()
        if not self._interactive():
            return None
        tmux = Tmux(self._ctx.tmux_socket)
        if tmux.list():
            self._watcher = Watcher(tmux)
        return self._watcher
