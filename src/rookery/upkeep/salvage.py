"""Puts a backup in the place of a database that is missing or damaged, and keeps what was there.

Nothing can be replaced inside such a file. It is moved away with its companions first. Without it the daemon and the
loop end by themselves, and the prepared copy takes its name after that: so no process writes on into the old one, and
no journal of one is read with the other. A kill between leaves no database, and the next `rook restore` goes on.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.errors import InvalidState, NotInitialised, StorageFailed
from rookery.config import layout, steps
from rookery.config.project import database_path, find_repository
from rookery.db import commits
from rookery.db.copies import check_whole, read_schema
from rookery.ops.context import Context
from rookery.processes import locks

_PATIENCE = 20.0
_PAUSE = 0.05
_SIGNS = (layout.LOCATION, layout.RUN, layout.BACKUPS)
"""What shows that a project was here: in one that never had a daemon there is no folder for running processes."""
_FILES = ("", "-wal", "-shm")
_DAMAGED = ("storage_damaged", "storage_foreign")


def root_of(ctx: Context) -> str:
    """The project's root; where only its database is missing, that of its repository."""
    try:
        return ctx.root
    except NotInitialised:
        root = find_repository(ctx.cwd)
        if root is None or not any(os.path.lexists(layout.path(root, name)) for name in _SIGNS):
            raise
        return root


def is_needed(root: str) -> bool:
    """True if the database is missing or damaged; one that is only busy, or on a full disk, is neither."""
    path = database_path(root)
    if not os.path.exists(path) or read_schema(path) is None:
        return True
    try:
        check_whole(path)
    except StorageFailed as error:
        if error.code not in _DAMAGED:
            raise
        return True
    return False


def wait_for_daemon(root: str) -> bool:
    """Wait until the daemon and the loop have seen that there is no database, and ended; False if they do not."""
    deadline = time.monotonic() + _PATIENCE
    holders = [layout.path(root, name) for name in (layout.DAEMON_LOCK, layout.LOOP_LOCK)]
    while any(map(locks.is_locked, holders)):
        if time.monotonic() > deadline:
            return False
        calls.sleep(_PAUSE)
    return True


def put_in_place(root: str, draft: str, name: str) -> str:
    """Move the damaged files into a folder of the backups, and the draft to their place; returns the folder."""
    path, folder = database_path(root), layout.path(root, layout.BACKUPS, name)
    os.mkdir(folder, 0o700)
    for suffix in _FILES:
        with suppress(FileNotFoundError):
            os.rename(path + suffix, os.path.join(folder, layout.DATABASE + suffix))
        steps.reached("damaged file moved")
    if not wait_for_daemon(root):
        raise InvalidState("the daemon has not ended", hint="end its process, then `rook restore` again")
    os.rename(draft, path)
    commits.prepare(path)
    commits.announce(path)
    if os.listdir(folder):
        return folder
    os.rmdir(folder)
    return ""
