"""Locks of files, as `flock` gives them."""

from __future__ import annotations

import fcntl
import os


def is_locked(path: str) -> bool:
    """True while a process holds the file's lock; False if there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def take(path: str, flags: int = 0) -> int | None:
    """The open file with its lock, created if it is not there; None if another process holds it."""
    file = open_file(path, flags)
    if hold(file):
        return file
    os.close(file)
    return None


def open_file(path: str, flags: int = 0) -> int:
    """The file of a lock, without its lock; created for its user alone if it is not there. Refuses a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def hold(file: int) -> bool:
    """Hold the lock of an open file until it is closed; False if another process does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
