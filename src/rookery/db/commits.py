"""Telling other processes that something was committed: a file beside the database whose time changes.

They cannot see it by SQLite's own files: the log is written before a commit counts, and what makes it count is in
memory that they share. A process that is killed in between has told nothing, so no reader relies on it alone.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from rookery.base import call as calls
from rookery.processes.inotify import CREATED, MODIFIED, TOUCHED, watch_folders

SUFFIX, LOG_SUFFIX = "-commits", "-wal"
_SOON = 0.05
"""What was written to a log counts a moment later; if its writer does not tell that it does, it was killed."""
_LOOK_AGAIN = 0.5
"""How often to look where nothing tells of files that change."""
_LONGEST = 60.0

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


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


class Commits:
    """Waits for commits to a database, or to another one beside it, of whatever process. Close it when done."""

    def __init__(self, path: str, *, rest: float = 0.0) -> None:
        self._rest = rest
        """The seconds between two looks at least, for those that take their time."""
        self._since = 0.0
        folder, name = os.path.split(path)
        self._log = name + LOG_SUFFIX
        self._watch = watch_folders({folder: MODIFIED | CREATED | TOUCHED})

    def wait(self, seconds: float) -> None:
        """Come back when something may have been committed since the last time, or after so long.

        It comes back too often rather than too seldom, and never waits longer than a minute: clocks are set, and
        machines are suspended.
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
            # Not that of others: it comes and goes with whoever reads telemetry.
            if self._log in names:
                deadline = min(deadline, time.monotonic() + _SOON)

    def close(self) -> None:
        """Let go of it."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
