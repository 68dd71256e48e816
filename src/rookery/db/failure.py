"""What SQLite and the system say when they fail, as errors for people."""

from __future__ import annotations

import apsw

from rookery.base.errors import StorageFailed

_CODES = {
    apsw.BusyError: ("storage_busy", "another process holds the database for very long; try again"),
    apsw.FullError: ("storage_full", "make room on the disk; the database is as it was"),
    apsw.ReadOnlyError: ("storage_read_only", "make the project's .rookery folder writable"),
    apsw.CantOpenError: ("storage_unavailable", "check that .rookery exists and that you may write to it"),
    apsw.CorruptError: ("storage_damaged", "run `rook doctor`, and restore a backup or an export"),
    apsw.NotADBError: ("storage_damaged", "the file is no database: restore a backup, or move it away and `rook init`"),
    apsw.IOError: ("storage_io", "check the disk; the database is as it was"),
}


def rolled_back(path: str) -> StorageFailed:
    """SQLite does so by itself after some errors, such as a full disk."""
    return StorageFailed(f"the database {path}: the transaction was rolled back", hint="try again")


def storage_failed(error: apsw.Error | OSError, path: str) -> StorageFailed:
    """What SQLite or the system said, as an error for people."""
    if isinstance(error, OSError):
        return StorageFailed(
            f"the database {path}: {error.filename}: {error.strerror}",
            hint="check that you may write to the .rookery folder, and that the disk has room",
            code="storage_io",
        )
    if isinstance(error, apsw.ConstraintError | apsw.SQLError):
        raise error  # a rule of ours was broken, or the SQL is wrong: that is our bug
    for kind, (code, hint) in _CODES.items():
        if isinstance(error, kind):
            return StorageFailed(f"the database {path}: {error}", hint=hint, code=code)
    return StorageFailed(f"the database {path}: {error}")
