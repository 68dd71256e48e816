"""Folders that a process makes for itself and throws away: a note beside each names its holder.

The note, `<name>.owner`, is there before the folder and goes after it. So whatever a kill leaves is found, and a folder
whose holder is alive is never taken for left. The note is a link to nowhere whose target is the holder's text: a link
appears whole, where a file would be empty for a moment.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.processes import holder as holders
from rookery.processes.holder import HolderId

NOTE = ".owner"
_LONGEST = 86_400.0
"""How long, in seconds, a holder keeps a folder of whom nobody here can see whether it lives."""


def make(path: str) -> None:
    """Make a folder of a name that nobody else uses, held by this thread's call."""
    me = holders.myself()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.symlink(f"{me.pid} {me.text}", path + NOTE)
    os.mkdir(path, 0o700)


def forget(path: str) -> None:
    """The folder is gone: remove its note."""
    with suppress(FileNotFoundError):
        os.unlink(path + NOTE)


def names(top: str) -> list[str]:
    """The folders below `top`, also those of which only the note is there."""
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


def is_left(path: str, now: float) -> bool:
    """True if the folder's holder is gone, or was never written down."""
    owner = owner_of(path)
    return owner is None or holders.is_gone(owner, lease_is_over=now - _made_at(path) > _LONGEST)


def _made_at(path: str) -> float:
    try:
        return os.lstat(path + NOTE).st_mtime
    except OSError:
        return 0.0
