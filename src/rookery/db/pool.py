"""Connections that a daemon keeps for the next call, and the one of each file through which its threads write.

Opening one takes longer than most calls, and closing the last one empties the log onto the disk. A connection belongs
to one thread at a time. Before a thread asks SQLite for the write lock it waits for its turn (`writer`): threads that
poll for that lock would slow down the one that holds it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import apsw

from rookery.base.errors import StorageFailed
from rookery.db.writer import Writer

Identity = tuple[int, int]

_MOST = 8


class Pool:
    """The connections that no thread uses just now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[tuple[Identity, apsw.Connection]]] = {}
        self._writers: dict[str, tuple[Identity, Writer]] = {}
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

    def writer(self, path: str, identity: Identity, connect: Callable[[str], apsw.Connection]) -> Writer | None:
        """What the threads of this process write to the file through; None if each writes through its own."""

        def open_connection() -> apsw.Connection:
            connection = connect(path)
            if self.identify(path) == identity:
                return connection
            connection.close()
            raise StorageFailed(f"another file has taken the place of {path}", hint="try again")

        with self._lock:
            known = self._writers.get(path)
            if known is not None and known[0] == identity:
                return known[1]
            writer = Writer(open_connection)
            if self._is_closed:
                writer.close()
            self._writers[path] = (identity, writer)
        if known is not None:
            known[1].close()  # to a file that another one has replaced
        return writer

    def close(self) -> None:
        """Let go of all of them; what is given back later is closed."""
        with self._lock:
            self._is_closed = True
            kept, self._free = self._free, {}
            writers, self._writers = self._writers, {}
        for free in kept.values():
            for _, connection in free:
                connection.close()
        for _, writer in writers.values():
            writer.close()


class KeptConnection(Pool):
    """What a process has opened before it has a call. It serves that one alone, so no thread waits for another."""

    def writer(self, path: str, identity: Identity, connect: Callable[[str], apsw.Connection]) -> None:
        """Nothing: the call writes through its own connection."""
