"""The clients whose calls a daemon serves, and how these end when it leaves."""

from __future__ import annotations

import threading

from rookery.daemon.client_connection import Connection

_DRAIN_SECONDS = 5.0
_CUT_SECONDS = 1.0


class Clients:
    """Connections whose calls are being served."""

    def __init__(self) -> None:
        self.served: set[Connection] = set()
        self._changed = threading.Condition()

    def begin(self, connection: Connection) -> None:
        """A call begins."""
        with self._changed:
            self.served.add(connection)

    def end(self, connection: Connection) -> None:
        """A call is over."""
        with self._changed:
            self.served.discard(connection)
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
