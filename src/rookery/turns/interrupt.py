"""Interrupting a turn: a request that names it, a signal to the runner, and the runner's ear for that signal.

The signal only says that there is something to read: the request names the turn, so that one which comes late does not
hit the next. It is heeded once the conversation has begun, because what the turn was told is kept there from then on.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Self

from rookery.base.draft import write_whole
from rookery.base.errors import ProgramFailed
from rookery.config import layout
from rookery.processes.holder import process_of, read
from rookery.processes.proctree import Identity, send
from rookery.sessions import journal

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from rookery.ops.context import Context
    from rookery.processes.child import Child
    from rookery.sessions.model import Session, Turn

SIGNAL = signal.SIGUSR1


def request(ctx: Context, session: Session, turn: Turn, by: str) -> bool:
    """Ask the runner to interrupt that turn; False if nobody runs it any more."""
    write_whole(_path(ctx, session), json.dumps({"turn_id": turn.id, "by": by}))
    if not journal.is_running(ctx.root, turn.id):
        return False
    if journal.find(ctx.root, turn.id, journal.RUNNER) is None:
        return True  # it is just starting, and looks for requests once the conversation has begun
    runner = find_runner(ctx.root, turn.id)
    return runner is not None and send(runner, SIGNAL)


def find_runner(root: str, turn_id: str) -> Identity | None:
    """The process that runs a turn, as its journal says; None if it has ended or cannot be seen from here."""
    if not journal.is_running(root, turn_id):
        return None
    found = journal.find(root, turn_id, journal.RUNNER)
    return None if found is None else process_of(read(found["pid"], found["start"]))


def stay_alive() -> None:
    """A runner between turns has nothing to interrupt, and must not be ended by the signal.

    A handler, because what is ignored would be ignored by the agent's program too.
    """
    signal.signal(SIGNAL, _overhear)


class Ear:
    """Listens while a turn runs; `by` is who interrupted it."""

    def __init__(self, path: str, turn_id: str, child: Child, line: str | None) -> None:
        self.by = ""
        self._path = path
        self._turn_id = turn_id
        self._child = child
        self._line = line
        self._has_begun = False

    def __enter__(self) -> Self:
        signal.signal(SIGNAL, self._hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        stay_alive()

    def begin(self) -> None:
        """The conversation has begun: from here on requests are heeded, and one that came before."""
        self._has_begun = True
        self._heed()

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self._heed()

    def _heed(self) -> None:
        if self.by or not self._has_begun:
            return
        by = self._read()
        if not by:
            return
        self.by = by
        if self._line is None:
            send(self._child.identity, signal.SIGINT)
            return
        try:
            self._child.send(self._line)
        except ProgramFailed:
            return  # it has ended by itself

    def _read(self) -> str:
        """Who asks for this very turn to be interrupted, if anybody does."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except (FileNotFoundError, ValueError):
            return ""
        return str(found["by"]) if found["turn_id"] == self._turn_id else ""


def _overhear(_number: int, _frame: FrameType | None) -> None:
    pass


def _path(ctx: Context, session: Session) -> str:
    return os.path.join(ctx.session_folder(session.id), layout.SESSION_INTERRUPT)
