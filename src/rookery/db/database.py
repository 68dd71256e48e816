"""One SQLite file through apsw: WAL, a busy timeout before anything else, `BEGIN IMMEDIATE` for every write.

Callers open transactions, stores never do. Whatever SQLite cannot do is raised as StorageFailed with a hint.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Self

import apsw

from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.config.environ import read_test
from rookery.db import commits
from rookery.db.migrate import APPLICATION_ID, SCHEMA_VERSION, create_file, upgrade
from rookery.db.pool import Pool
from rookery.db.sqlite import STEPS, StorageErrors, patience, rolled_back, storage_failed
from rookery.db.writer import Writer

Row = tuple[Any, ...]
Values = Sequence[object] | dict[str, object]


class Database:
    """An open database. Not shared between threads.

    Where many threads write to one file, `connection` is another one within `write()`: that of all of them.
    """

    def __init__(self, connection: apsw.Connection, path: str, *, is_shared: bool = False) -> None:
        self.connection = self._own = connection
        self.path = path
        self._errors = StorageErrors(path)
        self._is_shared = is_shared
        self._writer: Writer | None = None
        """Within `write()`, what the changes go through."""
        self._only_reads = False
        self._is_in_transaction = False
        self._can_be_interrupted = False
        call = calls.current()
        self._pool: Pool | None = None if call is None else call.connections
        self._identity = None if self._pool is None else self._pool.identify(path)

    @classmethod
    def open(cls, path: str) -> Self:
        """Open an existing database and bring an older schema up to date."""
        connection = reuse_connection(path)
        if connection is None or connection.pragma("user_version") != SCHEMA_VERSION:
            with StorageErrors(path):
                connection = _connect(path)
        return cls(connection, path, is_shared=True)

    @classmethod
    def create(cls, path: str) -> Self:
        """Make the database if it is not there, whole or not at all, and open it."""
        if not os.path.exists(path):
            with StorageErrors(path):
                create_file(path)
        commits.prepare(path)
        return cls.open(path)

    def close(self) -> None:
        """Close the file. No query works afterwards: another call may have the connection."""
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

    @contextmanager
    def write(self) -> Iterator[Self]:
        """A transaction that changes something: it holds the write lock from its start. Inner ones join it.

        `with db.write(): …` commits at the end, or leaves everything as it was.
        """
        if self._only_reads:
            raise RuntimeError("an operation that only reads wants to write")
        if self._is_in_transaction:
            yield self
            return
        calls.check_interrupted()
        writer = self._find_writer()
        counted = calls.counted_writing() if read_test("NO_CHILD_WHILE_WRITING") else nullcontext()
        with counted, self._alone("BEGIN IMMEDIATE") if writer is None else self._with_others(writer):
            connection = self.connection
            changes = connection.total_changes()
            yield self
            has_changed = connection.total_changes() != changes
        if has_changed:  # else a process that waits for a commit would be woken for nothing
            commits.announce(self.path)

    @contextmanager
    def read(self) -> Iterator[Self]:
        """A transaction that sees one state of the database from beginning to end."""
        with nullcontext() if self._is_in_transaction else self._alone("BEGIN"):
            yield self

    @contextmanager
    def _alone(self, begin: str) -> Iterator[None]:
        """A transaction through this database's own connection."""
        if begin != "BEGIN":
            calls.note_writing(True)
        try:
            self.execute(begin)
            try:
                with self._within():
                    yield
                    self.execute("COMMIT")
            except BaseException:
                # SQLite rolls back by itself on some errors (full disk): then there is nothing left to undo.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        finally:
            if begin != "BEGIN":
                calls.note_writing(False)

    @contextmanager
    def _with_others(self, writer: Writer) -> Iterator[None]:
        """A part of the transaction that the threads of this process share."""
        with self._errors:
            group = writer.enter()
        self.connection, self._writer = group.connection, writer
        error: BaseException | None = None
        try:
            with self._within():
                yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._writer = None
            if "connection" in self.__dict__:  # not closed meanwhile
                self.connection = self._own
            failure = writer.leave(group, error)
            if failure is not None:
                raise self._describe(failure) from failure

    @contextmanager
    def _within(self) -> Iterator[None]:
        self._is_in_transaction = True
        try:
            yield
        finally:
            self._is_in_transaction = False

    def _describe(self, failure: BaseException) -> StorageFailed:
        """Why nothing of a group was kept, for one of its callers."""
        if isinstance(failure, apsw.Error):
            return storage_failed(failure, self.path)
        if isinstance(failure, StorageFailed):
            return StorageFailed(failure.message, hint=failure.hint, code=failure.code)
        return rolled_back(self.path)

    def execute(self, sql: str, values: Values = ()) -> None:
        """Run a statement for its effect."""
        with self._errors:
            self._run(sql, values)

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        with self._errors:
            self._prepare(sql)
            self.connection.executemany(sql, rows)

    def all(self, sql: str, values: Values = ()) -> list[Row]:
        """Every row of a query."""
        with self._errors:
            return self._run(sql, values).fetchall()

    @contextmanager
    def rows(self, sql: str, values: Values = ()) -> Iterator[Iterator[Row]]:
        """`with db.rows(…) as rows:` reads the rows of a query as they are asked for.

        The log cannot be cleared meanwhile. So wait for nothing within the block, and yield nothing from it.
        """
        with self._errors:
            cursor = self._run(sql, values)
        try:
            yield self._iterate(cursor, sql)
        finally:
            cursor.close(True)

    def _iterate(self, cursor: apsw.Cursor, sql: str) -> Iterator[Row]:
        while True:
            if self._writer is not None:
                self._writer.before(sql)
            with self._errors:
                row = next(cursor, None)
            if row is None:
                return
            yield row

    def one(self, sql: str, values: Values = ()) -> Row | None:
        """The first row of a query."""
        with self._errors:
            return self._run(sql, values).fetchone()

    def _run(self, sql: str, values: Values) -> apsw.Cursor:
        self._prepare(sql)
        return self.connection.execute(sql, values)

    def _prepare(self, sql: str) -> None:
        """Let a long query stop when its call is interrupted; without a call, nothing looks for that."""
        if self._is_in_transaction and not self.connection.in_transaction:
            raise rolled_back(self.path)  # this statement would be committed by itself, without the rest
        if self._writer is not None:
            self._writer.before(sql)
        elif not self._can_be_interrupted and calls.current() is not None:
            self.connection.set_progress_handler(_look_for_interrupt, STEPS)
            self._can_be_interrupted = True

    def value(self, sql: str, values: Values = ()) -> Any:
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
        """A number that changes when another connection has written.

        Where threads share their commits, it changes after this one's own writes too.
        """
        with self._errors:
            return int(self._own.pragma("data_version"))

    def _find_writer(self) -> Writer | None:
        """What the threads of this process write through; None where each call has a process to itself."""
        if self._pool is None or self._identity is None or not self._is_shared:
            return None
        return self._pool.writer(self.path, self._identity, _connect)


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_handler(patience())
    if (connection.pragma("application_id"), connection.pragma("user_version")) != (APPLICATION_ID, SCHEMA_VERSION):
        upgrade(connection, path)
    connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")
    return connection


def is_current(path: str) -> bool:
    """True if a database is there that is at the newest schema; nothing is changed."""
    with StorageErrors(path), closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_handler(patience())
        return bool(connection.pragma("user_version") == SCHEMA_VERSION)


def reuse_connection(path: str) -> apsw.Connection | None:
    """A connection that an earlier call of this daemon has left; None elsewhere."""
    call = calls.current()
    pool: Pool | None = None if call is None else call.connections
    return None if pool is None else pool.take(path)


def _look_for_interrupt() -> bool:
    call = calls.current()
    if call is not None:
        call.check()
    return False
