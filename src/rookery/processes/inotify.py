"""Waiting for files to change, on Linux: a descriptor that becomes readable, and what has changed since.

On other systems there is no `Watch`, and its users look again by their timers.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress

MODIFIED, TOUCHED, CLOSED, MOVED_HERE, CREATED, DELETED = 0x2, 0x4, 0x8, 0x80, 0x100, 0x200
ANY = MODIFIED | TOUCHED | CLOSED | MOVED_HERE | CREATED | DELETED | 0x40 | 0x400 | 0x800
"""Everything that can change which file a name leads to, or what it holds: also moves and deletions of its folder."""
_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK
_HEAD = struct.Struct("iIII")
_OVERFLOW = 0x4000
_CHUNK = 65536


class Watch:
    """Folders in which files change."""

    def __init__(self) -> None:
        self._folders: dict[int, str] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.inotify_init1(_FLAGS)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "cannot watch files")

    def fileno(self) -> int:
        """What to wait for."""
        return self._fd

    def add(self, folder: str, kinds: int) -> None:
        """Watch the files of a folder; raises OSError if it is not there."""
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), kinds)
        if number < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), folder)
        self._folders[number] = folder

    def read(self) -> set[tuple[str, str]] | None:
        """Folder and name of everything that has changed since; None if the kernel has lost some of it."""
        changed: set[tuple[str, str]] = set()
        while True:
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                return changed
            at = 0
            while at < len(data):
                number, kind, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
                at += length
                if kind & _OVERFLOW:
                    return None
                changed.add((self._folders.get(number, ""), name))

    def close(self) -> None:
        """Stop watching."""
        os.close(self._fd)


def watch_folders(folders: Mapping[str, int]) -> Watch | None:
    """A watch on these folders; None where the system reports no changes: then the caller looks by the clock.

    That is so on other systems, if a folder is gone, and if the user has no more watches (128 in all, by default).
    """
    if sys.platform != "linux":
        return None
    with suppress(OSError), ExitStack() as opened:
        watch = Watch()
        opened.callback(watch.close)
        for folder, kinds in folders.items():
            watch.add(folder, kinds)
        opened.pop_all()
        return watch
    return None
