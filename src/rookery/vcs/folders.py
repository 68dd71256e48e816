"""Paths and folders of checkouts: read without following links, and removed in one step."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.errors import InvalidState, StorageFailed
from rookery.config import steps

_ASIDE = ".removed"


def real_place(folder: str) -> str:
    """The folder's path without links above it; the folder itself may be one."""
    path = calls.absolute(folder)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def own_place(folder: str) -> str:
    """The same; raises if the folder itself is a link: what is done to it would be done somewhere else."""
    place = real_place(folder)
    if os.path.islink(place):
        raise InvalidState(
            f"{place} is a link to {os.readlink(place)}, not a checkout", hint="find out why, and remove the link"
        )
    return place


def is_below(path: str, top: str) -> bool:
    """True if a path is a folder or lies in it."""
    return path == top or path.startswith(top + os.sep)


def relocated(path: str, root: str, old: str) -> str | None:
    """Where a path of a project is now that it was copied or moved; None if the path was outside of it."""
    for top in sorted((root, old), key=len, reverse=True):  # one of the two may lie in the other
        if is_below(path, top):
            return root + path[len(top) :]
    return None


def folders_above(path: str) -> list[str]:
    """The folders above a path of git's, from the top."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def is_empty(folder: str) -> bool:
    """True if nothing is there, or a folder that holds nothing."""
    if not os.path.lexists(folder):
        return True
    return os.path.isdir(folder) and not os.path.islink(folder) and not os.listdir(folder)


def read_text(path: str) -> str:
    """A file of git's, jj's or the user's, byte for byte; empty if it is not there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def read_line(path: str) -> str:
    """The line in a file of git's or jj's; empty if it cannot be read."""
    with suppress(OSError):
        return read_text(path).strip()
    return ""


def put_aside(folder: str) -> None:
    """Rename the folder in one step, so that a kill never leaves a half of it in its place."""
    delete_aside(folder)
    if os.path.lexists(folder):
        os.rename(folder, aside_of(folder))
        steps.reached("put aside")


def delete_aside(folder: str) -> None:
    """Delete what was put aside, now or before a kill."""
    path = aside_of(folder)
    if os.path.lexists(path):
        delete_tree(path)


def delete_tree(folder: str) -> None:
    """Delete a folder with all that is in it; links are deleted, never followed."""
    try:
        for path in _bottom_up(folder):
            with suppress(FileNotFoundError):  # another process deletes it too
                if os.path.isdir(path) and not os.path.islink(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
    except OSError as error:
        raise StorageFailed(
            f"{error.filename} cannot be deleted: {error.strerror}", hint="delete it by hand, and run this again"
        ) from error


def tree_size(folder: str) -> int:
    """The bytes of every file in a folder; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _bottom_up(folder: str) -> Iterator[str]:
    """Every path in the folder and the folder itself, deepest first; folders are made writable on the way."""
    try:
        mode = os.lstat(folder).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            os.chmod(folder, mode | 0o700)  # a program's cache may be read-only
        names = os.listdir(folder) if stat.S_ISDIR(mode) else []
    except FileNotFoundError:
        return
    for name in names:
        yield from _bottom_up(os.path.join(folder, name))
    yield folder


def aside_of(folder: str) -> str:
    """Where `put_aside` puts a folder, until it is deleted."""
    return os.path.join(os.path.dirname(folder), f".{os.path.basename(folder)}{_ASIDE}")
