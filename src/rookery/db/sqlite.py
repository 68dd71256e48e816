"""What we need of SQLite beside its queries: how long to wait for a lock, and its failures as errors for people."""

from __future__ import annotations

import time
from collections.abc import Callable

import apsw

from rookery.base import call as calls
from rookery.base.errors import StorageFailed

STEPS = 100_000
"""After so many steps of SQLite's machine, a few milliseconds, a query looks whether its call was interrupted."""
_PATIENCE_SECONDS = 60.0

_CODES = {
    apsw.BusyError: ("storage_busy", "another process holds the database for very long; try again"),
    apsw.FullError: ("storage_full", "make room on the disk; the database is as it was"),
    apsw.ReadOnlyError: ("storage_read_only", "make the project's .rookery folder writable"),
    apsw.CantOpenError: ("storage_unavailable", "check that .rookery exists and that you may write to it"),
    apsw.CorruptError: ("storage_damaged", "`rook restore` lists the backups, and brings one back"),
    apsw.NotADBError: (
        "storage_damaged",
        "it is no database; `rook restore` lists the backups, and brings one back",
    ),
    apsw.IOError: ("storage_io", "check the disk; the database is as it was"),
}


def patience(seconds: float = _PATIENCE_SECONDS) -> Callable[[int], bool]:
    """A busy handler that waits for a lock in short, uneven steps, for so long.

    SQLite's own timeout sleeps longer the longer a caller has waited. Among sixteen busy writers the latecomers then
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


class StorageErrors:
    """`with StorageErrors(path):` raises StorageFailed where SQLite or the system fails within the block.

    Every query has one around it, and a generator as context manager would take longer than many of them.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, apsw.Error | OSError):
            raise storage_failed(error, self._path) from error


def rolled_back(path: str) -> StorageFailed:
    """The error of a transaction that SQLite has rolled back by itself, after an error such as a full disk."""
    return StorageFailed(f"the database {path}: the transaction was rolled back", hint="try again")


def storage_failed(error: apsw.Error | OSError, path: str) -> StorageFailed:
    """A failure of SQLite or of the system, as an error for people."""
    if isinstance(error, OSError):
        return StorageFailed(
            f"the database {path}: {error.filename}: {error.strerror}",
            hint="check that you may write to the .rookery folder, and that the disk has room",
            code="storage_io",
        )
    if isinstance(error, apsw.ConstraintError | apsw.SQLError):
        raise error  # a rule of ours was broken, or the SQL is wrong: that is our bug
    code, hint = next((texts for kind, texts in _CODES.items() if isinstance(error, kind)), ("", ""))
    return StorageFailed(f"the database {path}: {error}", hint=hint, code=code)
