"""Which code a daemon runs, and whether newer code lies on the disk by now: an upgrade, or an edited working tree."""

from __future__ import annotations

import os
import threading
import time

import rookery

_LOOK_AGAIN = 1.0


class Fingerprint:
    """The newest change of any file of ours, when it was loaded."""

    def __init__(self, folder: str = os.path.dirname(os.path.abspath(rookery.__file__))) -> None:
        self._folder = folder
        self.loaded = newest_change(folder)
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._is_outdated = False

    def is_outdated(self) -> bool:
        """True if a file was changed since; looks at most once a second."""
        with self._lock:
            if time.monotonic() - self._looked > _LOOK_AGAIN:
                self._is_outdated = newest_change(self._folder) > self.loaded
                self._looked = time.monotonic()
            return self._is_outdated


def newest_change(folder: str) -> int:
    """When a source file below the folder was last changed, in nanoseconds; 0 while there is none."""
    newest = 0
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    newest = max(newest, newest_change(entry.path))
            elif entry.name.endswith((".py", ".sql", ".md")):
                newest = max(newest, entry.stat().st_mtime_ns)
    except FileNotFoundError:
        return newest  # in the middle of an upgrade
    return newest
