"""Copies of a database: made while others write, looked at without opening them, and put in the place of the content.

A copy appears whole: it is written and synced under another name. SQLite replaces the content of the live database in
one transaction, so that every other process sees the old content or the new one, also after a kill.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable

import apsw

from rookery.base.draft import draft_name
from rookery.base.errors import StorageFailed
from rookery.db.database import Database
from rookery.db.dialect import OBJECTS
from rookery.db.migrate import APPLICATION_ID, create_file, remove
from rookery.db.sqlite import StorageErrors, patience

_HEADER = 100
_MAGIC = b"SQLite format 3\0"


def copy_to(db: Database, target: str) -> None:
    """Write a copy of the database as it is now to a path where nothing is; writers are not held up."""
    draft = draft_name(target)
    try:
        with StorageErrors(db.path):
            db.connection.execute("VACUUM INTO ?", (draft,))
            os.chmod(draft, 0o600)
            _sync(draft)
            os.rename(draft, target)
            _sync(os.path.dirname(target))
    finally:
        remove(draft)


def read_schema(path: str) -> int | None:
    """The schema version that a file says it has; None if it is no database of ours."""
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return None
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        return None
    version, application = struct.unpack_from(">I", header, 60)[0], struct.unpack_from(">I", header, 68)[0]
    return int(version) if application == APPLICATION_ID else None


def check_whole(path: str) -> None:
    """Raise StorageFailed if the file is damaged."""
    with StorageErrors(path), contextlib.closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(1)") if row[0] != "ok"]
    if problems:
        raise StorageFailed(f"{path} is damaged: {problems[0]}", hint="choose another one", code="storage_damaged")


def check_tables(db: Database, fresh: str) -> None:
    """Raise StorageFailed if a database at the newest schema has other tables or triggers than a new one has."""
    remove(fresh)
    try:
        with StorageErrors(fresh):
            create_file(fresh)
        with contextlib.closing(Database.open(fresh)) as new:
            is_ours = set(new.all(OBJECTS)) == set(db.all(OBJECTS))
    finally:
        remove(fresh)
    if not is_ours:
        raise StorageFailed("it does not have Rookery's tables", hint="choose another one", code="storage_damaged")


def keep_journal(path: str) -> None:
    """Let a copy, which no other process uses, write ahead as a project's database does."""
    with StorageErrors(path), contextlib.closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def open_copy(path: str) -> Database:
    """A copy, brought to the newest schema."""
    return Database.open(path)


def version_of(db: Database) -> int:
    """A number that changes with every commit of another connection."""
    with StorageErrors(db.path):
        return int(db.connection.pragma("data_version"))


def replace_content(path: str, source: str, is_current: Callable[[], bool] = lambda: True) -> bool:
    """Give the database at a path the content of another one at the same schema, in one transaction.

    `is_current` is asked once no other process can write; False leaves everything as it was.
    """
    with (
        StorageErrors(path),
        contextlib.closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as target,
        contextlib.closing(apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)) as content,
    ):
        target.set_busy_handler(patience())
        target.execute("PRAGMA synchronous = FULL")
        wait_more, tries, pages = patience(), 0, 1
        with target.backup("main", content, "main") as backup:
            while not backup.done:
                try:
                    backup.step(pages)
                    if pages == 1 and not is_current():  # the first step has taken the lock
                        return False
                    pages = -1
                except (apsw.BusyError, apsw.LockedError):  # another process writes
                    if not wait_more(tries):
                        raise
                    tries += 1
    return True


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
