"""How a runner hears that its turn is interrupted.

A request is a file that names the turn, so that one which comes late does not hit the next turn; a signal only says
that there is something to read. The runner follows it once the conversation has begun, because from then on the program
keeps the turn's prompt.
"""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from types import FrameType

from rookery.base.errors import ProgramFailed
from rookery.base.files import read_text
from rookery.processes.child import Child
from rookery.processes.proctree import send

SIGNAL = signal.SIGUSR1


def ignore_interrupts() -> None:
    """Survive the signal while no program runs.

    By a handler: a signal that is ignored would be ignored by the agent's program too.
    """
    signal.signal(SIGNAL, lambda _number, _frame: None)


class InterruptListener:
    """Listens while a turn runs; `by` is who interrupted it."""

    def __init__(self, path: str, turn_id: str, child: Child, line: str | None) -> None:
        self.by = ""
        self._path = path
        self._turn_id = turn_id
        self._child = child
        self._line = line
        """Interrupts the program if it is sent; None for a program that gets SIGINT instead."""
        self._has_begun = False
        signal.signal(SIGNAL, self._check)

    def begin(self) -> None:
        """The conversation has begun: follow requests from now on, and one that came before."""
        self._has_begun = True
        self._check()

    def _check(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        if self.by or not self._has_begun:
            return
        by = self._read()
        if not by or self.by:  # the signal may come while we read
            return
        self.by = by
        if self._line is None:
            send(self._child.identity, signal.SIGINT)
        else:
            with suppress(ProgramFailed):  # it has ended by itself
                self._child.send(self._line)

    def _read(self) -> str:
        """Who asks for this very turn to be interrupted; empty if nothing does."""
        try:
            request = json.loads(read_text(self._path) or "{}")
        except ValueError:
            return ""
        return str(request["by"]) if request.get("turn_id") == self._turn_id else ""
