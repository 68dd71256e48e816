"""Connections that a daemon keeps for the next call, and the order in which its threads write.

Opening one takes longer than most calls, and closing the last one empties the log onto the disk. A connection belongs
to one thread at a time. Before a thread asks SQLite for the write lock it waits for its turn here: threads that poll
for that lock would slow down the one that holds it. Other processes may write all the same.
"""

from __future__ import annotations

import os
import threading

import apsw

from rookery.base.call import SLICE, check_interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    Identity = tuple[int, int]

_MOST = 8


class Pool:
    """The connections that no thread uses just now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[tuple[Identity, apsw.Connection]]] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._is_closed = False

    def identify(self, path: str) -> Identity | None:
        """Which file is at the path; None if there is none."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def take(self, path: str) -> apsw.Connection | None:
        """A connection to the file that is at the path now; None if there is none to be had."""
        identity = self.identify(path)
        while True:
            with self._lock:
                free = self._free.get(path)
                if not free:
                    return None
                known, connection = free.pop()
            if known == identity:
                return connection
            connection.close()  # to a file that another one has replaced

    def keep(self, path: str, identity: Identity | None, connection: apsw.Connection) -> None:
        """Keep a connection for the next call, unless there are enough, or something is left undone in it."""
        if identity is not None and not connection.in_transaction:
            with self._lock:
                free = self._free.setdefault(path, [])
                if len(free) < _MOST and not self._is_closed:
                    free.append((identity, connection))
                    return
        connection.close()

    def wait_for_turn(self, path: str) -> threading.Lock:
        """The lock of a file's writers, taken; an interrupt of the call ends the waiting."""
        with self._lock:
            turn = self._turns.setdefault(path, threading.Lock())
        while not turn.acquire(timeout=SLICE):
            check_interrupted()
        return turn

    def close(self) -> None:
        """Let go of all of them; what is given back later is closed."""
        with self._lock:
            self._is_closed = True
            kept, self._free = self._free, {}
        for free in kept.values():
            for _, connection in free:
                connection.close()
