"""Files that appear whole: they are written under another name, which no other thread or process uses, and renamed.

A process number would not do for that name: all calls of a daemon have the same, and two containers may.
"""

from __future__ import annotations

import os

from rookery.base import call as calls


def unique() -> str:
    """A random word for a name that no other process uses, and where no link can have been put."""
    return os.urandom(8).hex()


def draft_name(path: str) -> str:
    """A name beside the path, in the same folder, for what will be renamed to it."""
    return f"{path}.{unique()}"


def write_whole(path: str, content: str | bytes, *, mode: int | None = None, sync: bool = False) -> None:
    """Write a file whole or not at all; readers see the old one or the new one.

    Without `mode` the caller's umask decides. With `sync` it is on the disk before it has its name.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    draft = draft_name(path)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else mode)
    try:
        with open(handle, "wb") as file:
            _set_mode(handle, mode)
            file.write(data)
            if sync:
                file.flush()
                os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def _set_mode(handle: int, mode: int | None) -> None:
    call = calls.current()
    if mode is not None:
        os.fchmod(handle, mode)
    elif call is not None:
        os.fchmod(handle, 0o666 & ~call.umask)
