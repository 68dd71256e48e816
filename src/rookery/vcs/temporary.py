"""Folders that git needs for one command: for an index of its own, or for objects that are thrown away.

In a project they lie in `.rookery/scratch`, with a note of their holder (`processes/owned_folders.py`), so the loop
removes what a kill leaves. Where there is no project, or its state cannot be written, they lie elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rookery.base.draft import unique
from rookery.base.errors import StorageFailed
from rookery.config import layout
from rookery.config.project import find_repository, is_project, upward
from rookery.processes import owned_folders
from rookery.vcs.folders import delete_tree


@contextmanager
def temporary_folder(near: str, kind: str) -> Iterator[str]:
    """A new empty folder, readable by its user alone, for a git that works in `near`."""
    path = _make(near, kind)
    if path is None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix=f"rook-{kind}-") as folder:
            yield folder
        return
    try:
        yield path
    finally:
        with suppress(StorageFailed):  # the result counts; the loop removes the folder when we have ended
            delete_tree(path)
            owned_folders.forget(path)


def _make(near: str, kind: str) -> str | None:
    root = _project_of(near)
    if root is None:
        return None
    path = layout.path(root, layout.SCRATCH, f"{kind}-{unique()}")
    try:
        if not (_is_own(layout.path(root)) and _is_own(os.path.dirname(path))):
            return None
        owned_folders.make(path)
    except OSError:
        return None
    return path


def _project_of(near: str) -> str | None:
    """The root of the project that a folder lies in, or whose linked worktree it is."""
    folder = os.path.realpath(near)
    root = next(filter(is_project, upward(folder)), None) or find_repository(folder)
    return root if root is not None and is_project(root) else None


def _is_own(folder: str) -> bool:
    """True unless something else than a folder of ours lies there: a link could lead anywhere."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
