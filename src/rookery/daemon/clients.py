"""The clients of a daemon: those that are silent, those whose calls it serves, and how these end when it leaves."""

from __future__ import annotations

import select
import threading
import time

from rookery.daemon.client_connection import Connection
from rookery.daemon.hello import Guest

SILENT_SECONDS = 5.0
"""How long a client may send nothing."""
_DRAIN_SECONDS = 5.0
_CUT_SECONDS = 1.0


class Clients:
    """Connections, each with the agent whose socket it came through.

    A silent client has connected and not sent anything yet. It gets no thread, because hundreds would take all there
    are: the daemon's epoll watches it.
    """

    def __init__(self, events: select.epoll) -> None:
        self._events = events
        self.silent: dict[int, tuple[Connection, Guest | None, float]] = {}
        """By file number, with the time at which the daemon hangs up."""
        self.served: dict[Connection, Guest | None] = {}
        self._changed = threading.Condition()

    def count(self, guest: Guest) -> int:
        """How many clients came through this agent's socket."""
        guests = [*(known for _, known, _ in list(self.silent.values())), *list(self.served.values())]
        return sum(known is guest for known in guests)

    def add_silent(self, connection: Connection, guest: Guest | None) -> None:
        """Watch one more silent client."""
        self.silent[connection.fileno()] = (connection, guest, time.monotonic() + SILENT_SECONDS)
        self._events.register(connection.fileno(), select.EPOLLIN)

    def take_silent(self, number: int) -> tuple[Connection, Guest | None]:
        """The silent client with this file number, which is no longer watched."""
        self._events.unregister(number)  # raises while the daemon closes everything, and then `close` hangs up
        connection, guest, _ = self.silent.pop(number)
        return connection, guest

    def drop_late(self) -> None:
        """Hang up on those that have been silent for too long."""
        for number, (_, _, deadline) in list(self.silent.items()):
            if time.monotonic() >= deadline:
                self.take_silent(number)[0].close()

    def close(self) -> None:
        """Hang up on all that are silent."""
        while self.silent:
            self.silent.popitem()[1][0].close()

    def begin(self, connection: Connection, guest: Guest | None) -> None:
        """A call begins."""
        with self._changed:
            self.served[connection] = guest

    def end(self, connection: Connection) -> None:
        """A call is over."""
        with self._changed:
            self.served.pop(connection, None)
            self._changed.notify_all()

    def drain(self) -> None:
        """Let all calls end; interrupt those that take too long, and at last cut their connections."""
        while not self._wait(_DRAIN_SECONDS) and any(connection.may_take_longer for connection in list(self.served)):
            for connection in list(self.served):
                if not connection.may_take_longer:
                    connection.on_interrupt()
        for connection in list(self.served):
            connection.on_interrupt()
        if not self._wait(_CUT_SECONDS):
            for connection in list(self.served):
                connection.cut()
            self._wait(_CUT_SECONDS)

    def _wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self.served, seconds)
