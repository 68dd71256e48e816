"""One SQLite file through apsw: WAL, a busy timeout before anything else, `BEGIN IMMEDIATE` for every write.

Callers open transactions, stores never do. Whatever SQLite cannot do comes out as StorageFailed with a hint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import apsw

from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.config.environ import read_test
from rookery.db import commits
from rookery.db.failure import rolled_back, storage_failed

if TYPE_CHECKING:
    from rookery.db.pool import Pool
    from rookery.db.writer import Group, Writer

Row = tuple[Any, ...]

SCHEMA_VERSION = 13
APPLICATION_ID = 0x524F4F4B  # "ROOK"
PATIENCE_SECONDS = 60.0

_WRITING = "BEGIN IMMEDIATE"
STEPS = 100_000
"""After so many steps of SQLite's machine, a few milliseconds, a query looks whether its call was interrupted."""


class Database:
    """An open database. Not shared between threads.

    Where many threads write to one file, `connection` is another one within `write()`: that of all of them.
    """

    def __init__(self, connection: apsw.Connection, path: str, *, is_shared: bool = False) -> None:
        self.connection = self._own = connection
        self.path = path
        self._is_shared = is_shared
        self._writer: Writer | None = None
        """Within `write()`, what the changes go through."""
        self._only_reads = False
        self._depth = 0
        self._can_be_interrupted = False
        call = calls.current()
        self._pool: Pool | None = None if call is None else call.connections
        self._identity = None if self._pool is None else self._pool.identify(path)

    @classmethod
    def open(cls, path: str) -> Self:
        """Open an existing database and bring an older schema up to date."""
        kept = take_kept(path)
        if kept is not None and kept.pragma("user_version") == SCHEMA_VERSION:
            return cls(kept, path, is_shared=True)
        try:
            connection = _connect(path)
        except (apsw.Error, OSError) as error:
            raise storage_failed(error, path) from error
        return cls(connection, path, is_shared=True)

    @classmethod
    def create(cls, path: str) -> Self:
        """Make the database if it is not there, whole or not at all, and open it."""
        if not os.path.exists(path):
            from rookery.db.migrate import create_file

            try:
                create_file(path)
            except (apsw.Error, OSError) as error:
                raise storage_failed(error, path) from error
        return cls.open(path)

    def close(self) -> None:
        """Let go of the file. Nothing can be asked of it afterwards: another call may have the connection."""
        if self.__dict__.pop("connection", None) is None:
            return
        if self._pool is None:
            self._own.close()
        else:
            if self._only_reads:
                self._own.pragma("query_only", False)
            self._pool.keep(self.path, self._identity, self._own)

    def only_read(self) -> None:
        """From now on refuse every change: for an operation that promises to make none."""
        self._only_reads = True
        self._own.pragma("query_only", True)

    def write(self) -> Transaction:
        """A transaction that changes something: it holds the write lock from its first moment. Inner ones join it."""
        if self._only_reads:
            raise RuntimeError("an operation that only reads wants to write")
        return Transaction(self, _WRITING)

    def read(self) -> Transaction:
        """A transaction that sees one state of the database from beginning to end."""
        return Transaction(self, "BEGIN")

    def execute(self, sql: str, values: Sequence[object] | dict[str, object] = ()) -> None:
        """Run a statement for its effect."""
        try:
            self._run(sql, values)
        except apsw.Error as error:
            raise storage_failed(error, self.path) from error

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        try:
            self._prepare(sql)
            self.connection.executemany(sql, rows)
        except apsw.Error as error:
            raise storage_failed(error, self.path) from error

    def all(self, sql: str, values: Sequence[object] | dict[str, object] = ()) -> list[Row]:
        """Every row of a query."""
        try:
            return self._run(sql, values).fetchall()
        except apsw.Error as error:
            raise storage_failed(error, self.path) from error

    def rows(self, sql: str, values: Sequence[object] | dict[str, object] = ()) -> Rows:
        """`with db.rows(…) as rows:` reads the rows of a query as they are asked for.

        The log cannot be cleared meanwhile. So nothing is waited for within the block, and nothing yielded from it.
        """
        return Rows(self, sql, values)

    def one(self, sql: str, values: Sequence[object] | dict[str, object] = ()) -> Row | None:
        """The first row of a query."""
        try:
            return self._run(sql, values).fetchone()
        except apsw.Error as error:
            raise storage_failed(error, self.path) from error

    def _run(self, sql: str, values: Sequence[object] | dict[str, object]) -> apsw.Cursor:
        self._prepare(sql)
        return self.connection.execute(sql, values)

    def _prepare(self, sql: str) -> None:
        """Let a long query stop when its call is interrupted; where no call is served, nothing looks for that."""
        if self._depth and not self.connection.in_transaction:
            raise rolled_back(self.path)  # what comes now would be kept by itself, without the rest
        if self._writer is not None:
            self._writer.before(sql)
        elif not self._can_be_interrupted and calls.current() is not None:
            self.connection.set_progress_handler(_look_for_interrupt, STEPS)
            self._can_be_interrupted = True

    def value(self, sql: str, values: Sequence[object] | dict[str, object] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.one(sql, values)
        return None if row is None else row[0]

    @property
    def changed(self) -> int:
        """How many rows the last statement changed."""
        return self.connection.changes()

    @property
    def inserted(self) -> int:
        """The number of the row that the last statement added."""
        return self.connection.last_insert_rowid()

    @property
    def data_version(self) -> int:
        """A number that is another one after another connection has written.

        Where threads share their commits it is another one after this one's own writes too.
        """
        try:
            return int(self._own.pragma("data_version"))
        except apsw.Error as error:
            raise storage_failed(error, self.path) from error

    def _find_writer(self) -> Writer | None:
        """What the threads of this process write through; None where each call has a process to itself."""
        if self._pool is None or self._identity is None or not self._is_shared:
            return None
        return self._pool.writer(self.path, self._identity, _connect)


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_handler(patience())
    known = (connection.pragma("application_id"), connection.pragma("user_version"))
    if known != (APPLICATION_ID, SCHEMA_VERSION):
        from rookery.db.migrate import upgrade

        upgrade(connection, path)
    connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")
    return connection


def is_current(path: str) -> bool:
    """True if a database is there that need not be brought up to date; nothing is changed."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_handler(patience())
            return bool(connection.pragma("user_version") == SCHEMA_VERSION)
        finally:
            connection.close()
    except (apsw.Error, OSError) as error:
        raise storage_failed(error, path) from error


def take_kept(path: str) -> apsw.Connection | None:
    """A connection that an earlier call of this daemon has left; None elsewhere."""
    call = calls.current()
    kept: apsw.Connection | None = None
    if call is not None and call.connections is not None:
        kept = call.connections.take(path)
    return kept


def _look_for_interrupt() -> bool:
    call = calls.current()
    if call is not None:
        call.check()
    return False


def patience(seconds: float = PATIENCE_SECONDS) -> Callable[[int], bool]:
    """A busy handler that waits for a lock in short, uneven steps, for so long.

    SQLite's own timeout sleeps longer the longer somebody has waited. Among sixteen busy writers the latecomers then
    win, and some wait for seconds.
    """
    started = 0.0

    def wait(earlier_calls: int) -> bool:
        nonlocal started
        now = time.monotonic()
        if earlier_calls == 0:
            started = now
        calls.sleep(0.001 + time.monotonic_ns() % 2_000_000 / 1e9)
        return now - started < seconds

    return wait


class Rows:
    """The rows of a query, until the end of the block: then it is closed, whatever still refers to it."""

    def __init__(self, db: Database, sql: str, values: Sequence[object] | dict[str, object]) -> None:
        self._db = db
        self._query = (sql, values)
        self._cursor: apsw.Cursor | None = None

    def __enter__(self) -> Self:
        try:
            self._cursor = self._db._run(*self._query)
        except apsw.Error as error:
            raise storage_failed(error, self._db.path) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._cursor is not None:
            self._cursor.close(True)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        if self._cursor is None:
            raise StopIteration
        if self._db._writer is not None:
            self._db._writer.before(self._query[0])
        try:
            return next(self._cursor)
        except apsw.Error as error:
            raise storage_failed(error, self._db.path) from error


class Transaction:
    """`with db.write(): …` commits at the end, or leaves everything as it was."""

    def __init__(self, db: Database, begin: str) -> None:
        self._db = db
        self._begin = begin
        self._part: tuple[Writer, Group] | None = None
        self._is_counted = False
        self._changes = 0
        """How many rows the connection had ever changed before."""

    def __enter__(self) -> Database:
        db = self._db
        if db._depth == 0:
            writer = None
            if self._begin == _WRITING:
                calls.check_interrupted()
                writer = db._find_writer()
            if writer is None:
                self._begin_alone()
            else:
                self._join(writer)
            self._changes = db.connection.total_changes()
        db._depth += 1
        return db

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        db = self._db
        db._depth -= 1
        if db._depth:
            return
        if self._part is not None:
            self._leave(*self._part, error)
            return
        has_changed = self._has_changed(db.connection)
        try:
            if kind is None:
                self._commit()
            else:
                self._roll_back()
        finally:
            self._note_writing(False)
        if kind is None and has_changed:
            commits.tell(db.path)

    def _begin_alone(self) -> None:
        try:
            self._note_writing(True)
            self._db.execute(self._begin)
        except BaseException:
            self._note_writing(False)
            raise

    def _join(self, writer: Writer) -> None:
        try:
            group = writer.enter()
        except apsw.Error as error:
            raise storage_failed(error, self._db.path) from error
        self._part = writer, group
        self._db.connection, self._db._writer = group.connection, writer
        self._count(True)

    def _leave(self, writer: Writer, group: Group, error: BaseException | None) -> None:
        db, self._part = self._db, None
        db._writer = None
        has_changed = self._has_changed(group.connection)
        self._count(False)
        if "connection" in db.__dict__:  # not closed meanwhile
            db.connection = db._own
        failure = writer.leave(group, error)
        if failure is None:
            if error is None and has_changed:
                commits.tell(db.path)
            return
        if isinstance(failure, apsw.Error):
            raise storage_failed(failure, db.path) from failure
        if isinstance(failure, StorageFailed):
            raise StorageFailed(failure.message, hint=failure.hint, code=failure.code) from failure
        raise rolled_back(db.path) from failure

    def _has_changed(self, connection: apsw.Connection) -> bool:
        """True if something was written: who waits for a commit is not woken for nothing."""
        return self._begin == _WRITING and connection.total_changes() != self._changes

    def _note_writing(self, is_writing: bool) -> None:
        if self._begin != _WRITING:
            return
        call = calls.current()
        if call is not None:
            call.is_writing = is_writing
        self._count(is_writing)

    def _count(self, is_writing: bool) -> None:
        """Let tests see that a process is started, or a file written, within a write transaction."""
        if is_writing and read_test("NO_CHILD_WHILE_WRITING"):
            self._is_counted = True
            calls.count_writing(1)
        elif not is_writing and self._is_counted:
            self._is_counted = False
            calls.count_writing(-1)

    def _commit(self) -> None:
        if not self._db.connection.in_transaction:
            raise rolled_back(self._db.path)
        try:
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # SQLite rolls back by itself on some errors (full disk): then there is nothing left to undo.
        if self._db.connection.in_transaction:
            self._db.connection.execute("ROLLBACK")
