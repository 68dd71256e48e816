"""Telling other processes that something was committed: a file beside the database whose time changes.

They cannot see it by SQLite's own files: the log is written before a commit counts, and what makes it count is in
memory that they share. A process that is killed in between has told nothing, so no reader relies on it alone.
"""

from __future__ import annotations

import os

SUFFIX = "-commits"


def tell(path: str) -> None:
    """Something new can be read from the database at the path."""
    try:
        os.utime(path + SUFFIX)
    except FileNotFoundError:
        _make(path + SUFFIX)
    except OSError:
        return


def _make(path: str) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError:
        return
