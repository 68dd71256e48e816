"""The files in which agent programs keep their conversations, for a session that goes on with an earlier one."""

from __future__ import annotations

import os
import shutil
import stat

from rookery.base.errors import StorageFailed
from rookery.config.project import make_state_folders


def copy_files(source: str, target: str) -> None:
    """Copy the files of a session's folder into another one's; safe to repeat.

    The folder was the agent's: a link may lead anywhere and a pipe would hold us, so both are left out.
    """
    try:
        _copy_folder(source, target)
    except OSError as error:
        raise StorageFailed(f"the conversation in {source} cannot be copied: {error.strerror}") from error


def _copy_folder(source: str, target: str) -> None:
    make_state_folders(target)
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        path = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            _copy_folder(entry.path, path)
        elif entry.is_file(follow_symlinks=False):
            _copy_file(entry.path, path)


def _copy_file(source: str, target: str) -> None:
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as old:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as new:
            shutil.copyfileobj(old, new)
