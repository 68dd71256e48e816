"""Temporary folders of a process: a note beside each names its holder.

The note, `<name>.owner`, exists before the folder and is removed after it. So a kill leaves no folder without a note,
and nothing removes a folder whose holder is alive. The note is a symbolic link whose target is the holder's text, and
no file: a link appears whole, where a file would be empty for a moment.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.base.clock import has_passed
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId

NOTE = ".owner"
_LONGEST = 86_400.0
"""How long, in seconds, a holder on another host or in another container keeps its folder, if not said otherwise."""


def make(path: str) -> None:
    """Make a folder of a name that no other process uses, held by this thread's call."""
    me = holders.myself()
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(path), 0o700)  # none above it: a project that is gone is not made again
    os.symlink(f"{me.pid} {me.text}", path + NOTE)
    try:
        os.mkdir(path, 0o700)
    except OSError:
        forget(path)
        raise


def forget(path: str) -> None:
    """The folder is gone: remove its note."""
    with suppress(FileNotFoundError):
        os.unlink(path + NOTE)


def names(top: str) -> list[str]:
    """The folders in `top`, also those of which only the note exists."""
    try:
        return sorted({name.removesuffix(NOTE) for name in os.listdir(top)})
    except FileNotFoundError:
        return []


def owner_of(path: str) -> HolderId | None:
    """Who holds the folder; None if that was never written down."""
    try:
        pid, _, text = os.readlink(path + NOTE).partition(" ")
        return holders.read(int(pid), text)
    except (OSError, ValueError):
        return None


def is_left(path: str, now: float, *, lease: float = _LONGEST) -> bool:
    """True if the folder's holder is gone, or was never written down; one elsewhere keeps it for the lease."""
    owner = owner_of(path)
    if owner is None:
        return True
    noted_at = 0.0
    with suppress(OSError):
        noted_at = os.lstat(path + NOTE).st_mtime
    return holders.is_gone(owner, lease_is_over=has_passed(lease, noted_at, now))
