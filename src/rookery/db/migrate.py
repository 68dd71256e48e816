"""Numbered migrations, append-only: `migrations/0001_tasks.sql` takes an empty file to schema version 1.

A new file is written under another name, and appears whole. An older one is copied to `.rookery/backups/` before it is
changed. Each migration commits together with the version that it leads to.
"""

from __future__ import annotations

import contextlib
import os

import apsw

from rookery.base.draft import draft_name
from rookery.base.errors import StorageFailed
from rookery.config import layout
from rookery.config.project import make_state_folders
from rookery.db.sqlite import patience

SCHEMA_VERSION = 19
APPLICATION_ID = 0x524F4F4B  # "ROOK"
_FOLDER = os.path.join(os.path.dirname(__file__), "migrations")


def migrations() -> list[tuple[int, str]]:
    """Every migration's number and file, in order."""
    names = sorted(name for name in os.listdir(_FOLDER) if name.endswith(".sql"))
    return [(int(name.partition("_")[0]), os.path.join(_FOLDER, name)) for name in names]


def create_file(path: str) -> None:
    """Make a database at the newest schema; if another process is faster, its file stays."""
    draft = draft_name(path)
    try:
        with contextlib.closing(apsw.Connection(draft)) as connection:
            connection.pragma("journal_mode", "wal")
            connection.pragma("application_id", APPLICATION_ID)
            _apply(connection)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        remove(draft)


def upgrade(connection: apsw.Connection, path: str) -> None:
    """Bring an open database to the newest schema; raises StorageFailed if it is not ours, or is newer."""
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StorageFailed(
            f"{path} is not a Rookery database",
            hint="`rook restore` brings back a backup; or move the file away and run `rook init`",
            code="storage_foreign",
        )
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StorageFailed(
            f"{path} was made by a newer Rookery (schema {version}, this one knows {SCHEMA_VERSION})",
            hint="upgrade Rookery: `pip install --upgrade rookery`",
            code="storage_newer",
        )
    _back_up(connection, path, version)
    _apply(connection)


def remove(path: str) -> None:
    """Delete a database file with its companions, if they are there."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)


def _back_up(connection: apsw.Connection, path: str, version: int) -> None:
    folder = os.path.join(os.path.dirname(path), layout.BACKUPS)
    make_state_folders(folder)
    target = os.path.join(folder, f"schema-{version}.db")
    if not os.path.exists(target):
        draft = draft_name(target)
        try:
            connection.execute("VACUUM INTO ?", (draft,))
            os.replace(draft, target)
        finally:
            remove(draft)


def _apply(connection: apsw.Connection) -> None:
    connection.set_busy_handler(patience())
    for number, file in migrations():
        with open(file, encoding="utf-8") as script:
            statements = script.read()
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Read under the lock: another process may have come first.
            if connection.pragma("user_version") < number:
                connection.execute(statements)
                connection.pragma("user_version", number)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
