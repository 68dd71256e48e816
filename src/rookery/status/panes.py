"""Waiting for something to happen to any agent: the panes of all interactive ones through one tmux client.

A program that dies in its terminal is seen at once, and the loop ends its session. What the others show is read without
a process each.
"""

from __future__ import annotations

from collections.abc import Callable
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

_LOOK_AGAIN = 0.3
"""How often to look at most, and how often while terminals are watched, which tell only of themselves."""
_LONGEST_SECONDS = 60.0


class Lookout:
    """One person's view of all agents, for as long as they look."""

    def __init__(self, ctx: Context, react: Callable[[], None]) -> None:
        self._home = ctx
        self._react = react
        self._watcher: Watcher | None = None
        self._commits = Commits(ctx.db.path, rest=_LOOK_AGAIN)

    def wait(self, longest: float = _LONGEST_SECONDS) -> None:
        """Come back when something may have changed, or after so long; the loop sees to what has died."""
        watcher = self._open()
        if watcher is None:
            self._commits.wait(longest)
            return
        try:
            happened = watcher.wait(min(longest, _LOOK_AGAIN))
        except ProgramFailed:
            happened = []  # the last terminal went, and the server with it
            self.close()
        if self._watcher is None or any(event.kind != "output" for event in happened):
            self._react()

    def screens(self) -> dict[str, str]:
        """What each interactive agent's terminal shows, by the agent's name."""
        watcher = self._open()
        if watcher is None:
            return {}
        names = {each.terminal: each.agent for each in self._interactive()}
        try:
            return {names[name]: screen for name, screen in watcher.capture_all(names).items()}
        except ProgramFailed:
            self.close()
            return {}

    def close(self) -> None:
        """Let go of the client; no agent notices."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        self._commits.close()

    def _interactive(self) -> list[Session]:
        return store.sessions(self._home.db, alive=True, mode=TMUX)

    def _open(self) -> Watcher | None:
        """The client, as long as there is a terminal to look at."""
        if self._watcher is not None and self._watcher.is_open:
            return self._watcher
        self.close()
        if not self._interactive():
            return None
        tmux = Tmux(self._home.tmux_socket)
        if tmux.list():
            self._watcher = Watcher(tmux)
        return self._watcher
