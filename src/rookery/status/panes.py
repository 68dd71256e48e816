"""Waiting for something to happen to any agent, for a person who watches the status of all.

A program that dies in its terminal is seen soon, and the loop ends its session.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from rookery.base.errors import ProgramFailed
from rookery.db.commits import Commits
from rookery.ops.context import Context
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.terminal.tmux import Tmux

_SHORTEST_SECONDS = 0.3
"""The least seconds between two looks, and the most while there are terminals, which report nothing by themselves."""
_LONGEST_SECONDS = 60.0


class StatusWatch(AbstractContextManager["StatusWatch"]):
    """One person's view of all agents, for as long as they watch."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._ended: set[str] = set()
        self._commits = Commits(ctx.db.path, rest=_SHORTEST_SECONDS)

    def wait(self, longest: float = _LONGEST_SECONDS) -> None:
        """Return when something may have changed, or after so many seconds; the loop ends sessions that have died."""
        terminals = self._terminals()
        self._commits.wait(min(longest, _SHORTEST_SECONDS) if terminals else longest)
        with suppress(ProgramFailed):  # tmux does not answer: the next look asks again
            panes = Tmux(self._ctx.tmux_socket).list() if terminals else {}
            ended = {name for name in terminals if name not in panes or panes[name].dead}
            if ended - self._ended:
                self._ctx.react()
            self._ended = ended

    def screens(self) -> dict[str, str]:
        """What each interactive agent's terminal shows, by the agent's name."""
        terminals = self._terminals()
        if not terminals:
            return {}
        with suppress(ProgramFailed):
            screens = Tmux(self._ctx.tmux_socket).capture_all(terminals)
            return {terminals[name]: screen for name, screen in screens.items()}
        return {}

    def __exit__(self, *_error: object) -> None:
        self._commits.close()

    def _terminals(self) -> dict[str, str]:
        """The agents of all terminals."""
        return {session.terminal: session.agent for session in store.sessions(self._ctx.db, alive=True, mode=TMUX)}
