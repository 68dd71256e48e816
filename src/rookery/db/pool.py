"""Connections that a daemon keeps for the next call, and the one of each file through which its threads write.

Opening one takes longer than most calls, and closing the last one writes the log back into the file. A connection
belongs to one thread at a time. Before a thread asks SQLite for the write lock it waits for its turn (`writer`):
threads that poll for that lock would slow down the one that holds it.
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
    """The connections that no thread uses now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[tuple[Identity, apsw.Connection]]] = {}
        self._writers: dict[str, tuple[Identity, Writer]] = {}
        self._is_closed = False

    def identify(self, path: str) -> Identity | None:
        """Which file is at the path; None if there is none."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def take(self, path: str) -> apsw.Connection | None:
        """A connection to the file that is at the path now; None if none is free."""
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
        """Keep a connection for the next call, unless there are enough, or it is within a transaction."""
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
        """Close all of them, and those that come back later."""
        with self._lock:
            self._is_closed = True
            connections = [connection for free in self._free.values() for _, connection in free]
            writers = [writer for _, writer in self._writers.values()]
            self._free, self._writers = {}, {}
        for connection in connections:
            connection.close()
        for writer in writers:
            writer.close()


class KeptConnection(Pool):
    """What a worker has opened before it has a call. It serves that call alone, so no thread waits for another."""

    def writer(self, path: str, identity: Identity, connect: Callable[[str], apsw.Connection]) -> None:
        """Nothing: the call writes through its own connection."""
