"""Threads of one process that write to one database file: one after the other, and those that wait share a commit.

A commit waits for the disk, which takes longer than most changes. So the threads write through one connection: the
first begins a transaction, and every thread that waits meanwhile goes on in it, in a savepoint. The last one commits,
and each of them returns only then. No thread waits for others to join: one that is alone begins, writes and commits.

An error of one caller undoes what that caller did. A commit that fails, or a transaction that SQLite rolls back by
itself (a full disk), fails every caller of the group, because none of them has had an answer. Other processes may
write at any time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache

import apsw

from rookery.base import call as calls
from rookery.db.sqlite import STEPS

_MOST_CALLERS = 64
_MOST_SECONDS = 0.05
_CHANGING = {"INSERT", "UPDATE", "DELETE", "REPLACE"}


class Group:
    """Callers whose changes are committed together, or not at all."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.callers = 0
        """Those that have finished their part, and wait for the commit."""
        self._since = 0.0
        self.outcome: Future[None] = Future()
        """It was committed, or why nothing of it was kept."""

    @property
    def is_full(self) -> bool:
        """True if no more callers may join: those that are done must not wait for ever."""
        return self.callers >= _MOST_CALLERS or time.monotonic() - self._since > _MOST_SECONDS

    def add(self) -> None:
        """One more caller has finished its part."""
        if self.callers == 0:
            self._since = time.monotonic()
        self.callers += 1


class Writer:
    """The one connection of a process that changes a file, and the order of the threads that use it."""

    def __init__(self, open_connection: Callable[[], apsw.Connection]) -> None:
        self._open = open_connection
        self._connection: apsw.Connection | None = None
        self._group: Group | None = None
        """The open transaction's. Like the connection, it belongs to the thread whose turn it is."""
        self._may_interrupt = False
        self._mutex = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many threads wait for their turn."""
        return len(self._waiting)

    def enter(self) -> Group:
        """Wait for this thread's turn and begin its part; the group's connection is its own until `leave`."""
        self._take_turn()
        calls.note_writing(True)
        try:
            return self._begin()
        except BaseException:
            self._end_turn()
            raise

    def leave(self, group: Group, error: BaseException | None) -> BaseException | None:
        """End this thread's part, which failed if there is an error.

        Returns when its changes are on the disk, or with the reason why nothing of them was kept.
        """
        try:
            self._end_part(group, error)
        finally:
            self._end_turn()
        return group.outcome.exception() if error is None else None  # no interrupt ends this wait

    def before(self, sql: str) -> None:
        """Say which statement comes next: an interrupt may end it only if no other caller loses anything by that.

        SQLite rolls the whole transaction back when a statement that changes something is interrupted.
        """
        group = self._group
        self._may_interrupt = group is None or group.callers == 0 or _only_reads(sql)

    def close(self) -> None:
        """Close the connection, now or when the last thread is done with it."""
        with self._mutex:
            self._is_closed = True
            if not self._is_taken:
                self._drop_connection()

    def _begin(self) -> Group:
        group = self._group
        if group is not None:
            group.connection.execute("SAVEPOINT caller")
            return group
        if self._connection is None:
            self._connection = self._open()
            self._connection.set_progress_handler(self._look_for_interrupt, STEPS)
        self._connection.execute("BEGIN IMMEDIATE")
        self._group = Group(self._connection)
        return self._group

    def _end_part(self, group: Group, error: BaseException | None) -> None:
        """Add this caller's changes to the group's, or undo them."""
        self._may_interrupt = False
        connection = group.connection
        try:
            if not connection.in_transaction:
                self._lose(group, error or apsw.AbortError("the transaction was rolled back"))
            elif error is None:
                if group.callers:
                    connection.execute("RELEASE caller")
                group.add()
            elif group.callers:
                connection.execute("ROLLBACK TO caller; RELEASE caller")
            else:
                self._lose(group, error)
        except BaseException as failure:
            self._lose(group, failure)

    def _end_turn(self) -> None:
        """Let the next thread go on; the last one of a group commits it."""
        group = self._group
        if group is None or group.is_full or not self._hand_on():
            if group is not None:
                self._commit(group)
            self._hand_on(or_free=True)
        calls.note_writing(False)

    def _commit(self, group: Group) -> None:
        try:
            group.connection.execute("COMMIT")
        except BaseException as error:
            self._lose(group, error)
        else:
            self._group = None
            group.outcome.set_result(None)

    def _lose(self, group: Group, error: BaseException) -> None:
        """End the group with nothing of it kept."""
        # SQLite rolls back by itself on some errors (full disk): then there is nothing left to undo.
        if group.connection.in_transaction:
            with suppress(apsw.Error):
                group.connection.execute("ROLLBACK")
        if group.connection.in_transaction:  # it cannot be used any more; closing it rolls back
            self._drop_connection()
        self._group = None
        group.outcome.set_exception(error)

    def _take_turn(self) -> None:
        """Wait until no other thread writes; an interrupt of the call ends the waiting.

        A call that is stopped (Ctrl-Z) leaves the queue meanwhile: a thread that does not go on must not get the turn.
        """
        was_here = False
        while True:
            seat = threading.Lock()
            seat.acquire()
            with self._mutex:
                if not self._is_taken:
                    self._is_taken = True
                    return
                if was_here:
                    self._waiting.appendleft(seat)
                else:
                    self._waiting.append(seat)
            if seat.acquire(timeout=calls.SLICE) or not self._withdraw(seat):
                return
            was_here = True
            calls.check_interrupted()

    def _withdraw(self, seat: threading.Lock) -> bool:
        """Leave the queue; False if the turn has come just now."""
        with self._mutex, suppress(ValueError):
            self._waiting.remove(seat)
            return True
        return False

    def _hand_on(self, *, or_free: bool = False) -> bool:
        """Give the turn to the thread that has waited longest; False if none waits."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
                return True
            if or_free:
                self._is_taken = False
                if self._is_closed:
                    self._drop_connection()
            return False

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _look_for_interrupt(self) -> bool:
        call = calls.current()
        if call is not None and self._may_interrupt:
            call.check()
        return False


@lru_cache(maxsize=512)
def _only_reads(sql: str) -> bool:
    words = sql.upper().split()
    return bool(words) and words[0] in ("SELECT", "WITH") and not _CHANGING.intersection(words)
