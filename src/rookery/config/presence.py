"""Whether the state that a process was started for is still there.

A person may delete `.rookery` under running processes, and make a new project at the same path. So a process keeps the
folder open: while it is open, no other folder has its inode. A process that finds it gone ends, and writes why
to a file of the user's, as the logs are gone too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rookery.base.clock import stamp
from rookery.config import layout
from rookery.config.environ import now, read_environ

_PAUSE = 1.0
_LASTING = (layout.DATABASE, layout.LOCATION, layout.IGNORE, layout.RUN)
"""What nothing of ours removes."""
_MISSING_SECONDS = 1.0
"""How long the database may be missing: a person who restores it first removes the old one."""
_DOUBT_SECONDS = 5.0


class Presence:
    """The folder of the state, as it was when this was made; raises OSError if there is none."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folder = os.open(layout.path(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lasting = [name for name in _LASTING if self._has(name)]
        self._missing_since = 0.0

    @property
    def is_in_doubt(self) -> bool:
        """True if the folder may just be being deleted, and a new file would make that fail: ask again soon."""
        return 0 < self._missing_since > time.monotonic() - _DOUBT_SECONDS

    def is_gone(self) -> bool:
        """True if the folder was deleted or replaced, or has no database any more. A moved one is still there."""
        here = os.fstat(self._folder)
        if here.st_nlink == 0:
            return True
        with suppress(FileNotFoundError, NotADirectoryError):
            if not os.path.samestat(here, os.stat(layout.path(self._root))):
                return True
        missing = [name for name in self._lasting if not self._has(name)]
        self._missing_since = (self._missing_since or time.monotonic()) if missing else 0.0
        return layout.DATABASE in missing and time.monotonic() - self._missing_since >= _MISSING_SECONDS

    def _has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def watch(presence: Presence, act: Callable[[], object]) -> None:
    """Have a thread act once the state is gone. It looks by the clock: a user has few watches, and runners are many."""

    def look() -> None:
        while not presence.is_gone():
            threading.Event().wait(_PAUSE)
        act()

    threading.Thread(target=look, name="presence", daemon=True).start()


def removed_log() -> str:
    """The file that says which processes have ended because their project was deleted."""
    return os.path.join(read_environ().state_home, "rookery", "removed.log")


def report_removed(root: str, text: str) -> None:
    """Say there that a process ends."""
    with suppress(OSError):
        os.makedirs(os.path.dirname(removed_log()), mode=0o700, exist_ok=True)
        file = os.open(removed_log(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(file, "ab", buffering=0) as log:
            line = f"{stamp(now())} [{os.getpid()}] {layout.path(root)} was deleted: {text}\n"
            log.write(line.encode(errors="backslashreplace"))
