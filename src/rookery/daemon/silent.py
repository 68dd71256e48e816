"""Clients that have connected and not said anything yet. They get no thread: hundreds would take all there are."""

from __future__ import annotations

import select
import time

from rookery.daemon.client_connection import Connection
from rookery.daemon.hello import Guest

SECONDS = 5.0
"""How long a client may say nothing."""


class Silent:
    """Those clients, watched by the daemon's epoll, until they say something or have been silent for too long."""

    def __init__(self, events: select.epoll) -> None:
        self._events = events
        self._clients: dict[int, tuple[Connection, Guest | None, float]] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def __contains__(self, number: int) -> bool:
        return number in self._clients

    def add(self, connection: Connection, guest: Guest | None) -> None:
        """Watch one more."""
        self._clients[connection.fileno()] = (connection, guest, time.monotonic() + SECONDS)
        self._events.register(connection.fileno(), select.EPOLLIN)

    def take(self, number: int) -> tuple[Connection, Guest | None]:
        """The client behind a file number, which is no longer watched."""
        self._events.unregister(number)  # raises where all of it is being closed, and then `close` hangs up
        connection, guest, _ = self._clients.pop(number)
        return connection, guest

    def drop_late(self) -> None:
        """Hang up on those who have been silent for too long."""
        for number, (_, _, deadline) in list(self._clients.items()):
            if time.monotonic() >= deadline:
                self.take(number)[0].close()

    def close(self) -> None:
        """Hang up on all of them."""
        while self._clients:
            self._clients.popitem()[1][0].close()

    def count(self, guest: Guest) -> int:
        """How many of them come from that sandbox."""
        return sum(known is guest for _, known, _ in list(self._clients.values()))
