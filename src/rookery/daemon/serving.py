"""The calls that a daemon is serving, and how it lets them end when it leaves."""

from __future__ import annotations

import threading
import time

from rookery.daemon.client_connection import Connection
from rookery.daemon.hello import Guest

_DRAIN_SECONDS = 5.0
_CUT_SECONDS = 1.0


class Serving:
    """The connections of calls that have begun and not ended, each with the agent whose socket it came by."""

    def __init__(self) -> None:
        self._calls: dict[Connection, Guest | None] = {}
        self._changed = threading.Condition()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def begin(self, connection: Connection, guest: Guest | None) -> None:
        """A call has come in."""
        with self._changed:
            self._calls[connection] = guest

    def end(self, connection: Connection) -> None:
        """It is over."""
        with self._changed:
            self._calls.pop(connection, None)
            self._changed.notify_all()

    def count(self, guest: Guest) -> int:
        """How many calls came by this agent's socket."""
        return sum(known is guest for known in list(self._calls.values()))

    def drain(self) -> None:
        """Let all of them end; what takes too long is interrupted, and at last cut off."""
        while not self._wait(_DRAIN_SECONDS) and any(each.may_take_longer for each in list(self._calls)):
            for connection in list(self._calls):
                if not connection.may_take_longer:
                    connection.on_interrupt()
        for connection in list(self._calls):
            connection.on_interrupt()
        if not self._wait(_CUT_SECONDS):
            for connection in list(self._calls):
                connection.cut()
            self._wait(_CUT_SECONDS)

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._calls:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True
