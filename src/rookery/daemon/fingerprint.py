"""Which code a daemon runs, and whether the disk holds newer code by now: an upgrade, or an edited working tree."""

from __future__ import annotations

import os
import threading
import time

import rookery
from rookery.processes.inotify import ANY, Watch, watch_folders

_COMPILED = "__pycache__"
_LOOK_AGAIN, _LOOK_ANYWAY = 1.0, 30.0
"""How often to look at most, and how often without a reported change: a link above the folder may lead elsewhere."""


class Fingerprint:
    """The newest change of any file of ours, when it was loaded."""

    def __init__(self, folder: str = os.path.dirname(os.path.abspath(rookery.__file__))) -> None:
        self._folder = folder
        self.loaded = newest_change(folder)
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._is_outdated = False
        self._watch: Watch | None = None
        self._has_changed = True

    def watch(self) -> None:
        """From now on let the system report changes: a look at every file takes as long as a short call."""
        folders = (folder for folder, _, _ in os.walk(self._folder) if os.path.basename(folder) != _COMPILED)
        self._watch = watch_folders(dict.fromkeys(folders, ANY))

    def is_outdated(self) -> bool:
        """True if a file was changed since."""
        with self._lock:
            self._has_changed |= self._watch is None or self._watch.read() != set()
            passed = time.monotonic() - self._looked
            if passed > (_LOOK_AGAIN if self._has_changed else _LOOK_ANYWAY):
                self.look()
                self._has_changed = False
            return self._is_outdated

    def look(self) -> bool:
        """The same by a look at every file."""
        self._is_outdated = newest_change(self._folder) > self.loaded
        self._looked = time.monotonic()
        return self._is_outdated


def newest_change(folder: str) -> int:
    """When a source file below the folder was last changed, in nanoseconds; 0 while there is none."""
    newest = 0
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                if entry.name != _COMPILED:
                    newest = max(newest, newest_change(entry.path))
            elif entry.name.endswith((".py", ".sql", ".md")):
                newest = max(newest, entry.stat().st_mtime_ns)
    except FileNotFoundError:
        return newest  # in the middle of an upgrade
    return newest
