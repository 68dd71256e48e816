"""Announcing commits to other processes: a file beside the database whose time changes.

SQLite's own files do not show them: the log is written before a commit counts, and what makes it count is in shared
memory. A process that is killed in between has announced nothing, so no reader relies on it alone.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, suppress

from rookery.base import call as calls
from rookery.processes.inotify import CREATED, MODIFIED, TOUCHED, watch_folders

SUFFIX, LOG_SUFFIX = "-commits", "-wal"
_SOON = 0.05
"""What was written to a log counts a moment later; a writer that does not announce it was killed."""
_LOOK_AGAIN = 0.5
"""How often to look where the system does not report that files change."""
_LONGEST = 60.0


def prepare(path: str) -> None:
    """Make the file that announces commits to a new database, if it is not there."""
    with suppress(OSError):  # without it readers learn of a commit a moment later
        os.close(os.open(path + SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def announce(path: str) -> None:
    """Say that something new can be read from the database at the path.

    A file that is missing is not made again: the project may just be being deleted, and that would fail.
    """
    with suppress(OSError):
        os.utime(path + SUFFIX)


class Commits(AbstractContextManager["Commits"]):
    """Waits for commits of any process to a database, or to another one beside it. Close it when done."""

    def __init__(self, path: str, *, rest: float = 0.0) -> None:
        self._rest = rest
        """The seconds between two looks at least, for a caller whose look takes long."""
        self._since = 0.0
        folder, name = os.path.split(path)
        self._log = name + LOG_SUFFIX
        self._watch = watch_folders({folder: MODIFIED | CREATED | TOUCHED})

    def wait(self, seconds: float) -> None:
        """Return when something may have been committed since the last time, or after so long.

        It returns too often rather than too seldom, and never waits longer than a minute: clocks are set, and machines
        are suspended.
        """
        deadline = time.monotonic() + min(seconds, _LONGEST)
        self._wait(deadline)
        calls.sleep(max(0.0, self._since + self._rest - time.monotonic()))
        self._since = time.monotonic()

    def _wait(self, deadline: float) -> None:
        if self._watch is None:
            calls.sleep(min(deadline - time.monotonic(), _LOOK_AGAIN))
            return
        while (left := deadline - time.monotonic()) > 0:
            calls.check_interrupted()
            if not calls.wait([self._watch.fileno()], left):
                continue
            changed = self._watch.read()
            names = () if changed is None else [name for _, name in changed]
            if changed is None or any(name.endswith(SUFFIX) for name in names):
                return
            # Not the log of telemetry: it comes and goes with its readers.
            if self._log in names:
                deadline = min(deadline, time.monotonic() + _SOON)

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def __exit__(self, *_error: object) -> None:
        self.close()
