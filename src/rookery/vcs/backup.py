"""The files that a checkout is about to lose, kept so that they can be put back byte for byte, on a full disk too.

Git never writes into a file of a checkout: it removes it and makes another. So a second name for the old file (a hard
link) keeps its content, times and mode, costs no room, and shows by its inode whether the file was replaced at all.
Where there can be no link, on another filesystem, there is a copy.

Putting back first removes what git has written, which makes room, and only then brings the old files. It can be
repeated: killed anywhere, or stopped by a full disk, the next try starts from what is there. A file that is neither
what was kept nor what git was writing belongs to the user and stays.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from rookery.base.errors import ProgramFailed
from rookery.vcs.folders import folders_above
from rookery.vcs.git.repository import GitStore
from rookery.vcs.git.tree_diff import TreeChange

_LINK, _MODULE = "120000", "160000"


def keep(top: str, changed: Iterable[TreeChange], place: str) -> None:
    """Keep what is at the paths that are about to change, and the folders above; `place` exists once all of it is kept.

    It holds them under their own paths: a folder that is not in there was not in the checkout either.
    """
    half = f"{place}.half"
    os.mkdir(half)
    for path in (change.path for change in changed):
        for folder in (*folders_above(path), path):
            if _is_folder(top, folder):
                os.makedirs(os.path.join(half, folder), exist_ok=True)
        if _is_file(top, path):
            _link_or_copy(os.path.join(top, path), os.path.join(half, path))
    os.rename(half, place)


def restore(store: GitStore, top: str, changed: Sequence[TreeChange], place: str) -> list[str]:
    """Put back what was kept; returns the files that another process has changed meanwhile, which stay as they are."""

    def is_restored(path: str) -> bool:
        if _is_file(place, path):
            return _is_same(top, place, path)
        return _is_folder(top, path) if _is_folder(place, path) else not _is_file(top, path)

    differ = [change for change in changed if not is_restored(change.path)]
    there = [change for change in differ if _is_file(top, change.path)]
    # A file that is the beginning of its copy comes from a restore that was stopped while it copied.
    begun = {change.path for change in there if _is_beginning(top, place, change.path)}
    for path in written_by_git(store, top, there) | begun:
        os.unlink(os.path.join(top, path))
    for folder in sorted(_needed_folders(changed), key=len, reverse=True):
        if _is_folder(top, folder) and not _is_folder(place, folder) and not os.listdir(os.path.join(top, folder)):
            os.rmdir(os.path.join(top, folder))
    for path in (change.path for change in changed):
        if _is_folder(place, path):
            _make_folder(top, path)
    for path in (change.path for change in differ if _is_file(place, change.path)):
        # Unless a file of the user's is there, or in place of a folder above it.
        if _make_folder(top, os.path.dirname(path)) and not os.path.lexists(os.path.join(top, path)):
            _link_or_copy(os.path.join(place, path), os.path.join(top, path))
    return [change.path for change in differ if not is_restored(change.path)]


def _needed_folders(changed: Iterable[TreeChange]) -> set[str]:
    """The folders in which git puts what the new commit has; a submodule is one itself."""
    added = [change for change in changed if not change.is_deleted]
    above = {folder for change in added for folder in folders_above(change.path)}
    return above | {change.path for change in added if change.new_mode == _MODULE}


def written_by_git(store: GitStore, top: str, changed: Sequence[TreeChange]) -> set[str]:
    """The paths at which there is the file of the new commit, or its beginning.

    A filter of the user's that makes files from what is committed may fail now. So a whole file is known by what it
    would be committed as; only for one that was cut off the filter has to run.
    """
    wanted = [change for change in changed if not change.is_deleted and change.new_mode != _MODULE]
    ids = _hash(store, [change.path for change in wanted if stat.S_ISREG(_mode(top, change.path))])
    return {
        change.path
        for change in wanted
        if ids.get(change.path) == change.new_oid or _is_beginning_of_new(store, top, change)
    }


def _hash(store: GitStore, paths: Sequence[str]) -> dict[str, str]:
    """The id as which each file would be committed."""
    if not paths:
        return {}
    done = store.run("hash-object", "--stdin-paths", stdin="".join(f"{_quoted(path)}\n" for path in paths))
    return dict(zip(paths, done.stdout.split(), strict=False)) if done.ok else {}


def _quoted(path: str) -> str:
    """A path as git reads it from a line."""
    if "\n" not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _is_beginning_of_new(store: GitStore, top: str, change: TreeChange) -> bool:
    mode = _mode(top, change.path)
    if not stat.S_ISLNK(mode) and not stat.S_ISREG(mode):
        return False
    content = _content(os.path.join(top, change.path))
    how = ("blob",) if change.new_mode == _LINK else ("--filters", f"--path={change.path}")
    with suppress(ProgramFailed):
        return not content or store.read_bytes("cat-file", *how, change.new_oid).startswith(content)
    return False


def _is_beginning(top: str, place: str, path: str) -> bool:
    """True if a file is the beginning of the one that was kept."""
    is_file = stat.S_ISREG(_mode(top, path)) and _is_file(place, path)
    return is_file and _content(os.path.join(place, path)).startswith(_content(os.path.join(top, path)))


def _is_same(top: str, place: str, path: str) -> bool:
    """True if a file is the one that was kept, or equal to its copy."""
    full, copy = os.path.join(top, path), os.path.join(place, path)
    if _mode(top, path) != _mode(place, path):
        return False
    now, before = os.lstat(full), os.lstat(copy)
    return os.path.samestat(now, before) or (now.st_size == before.st_size and _content(full) == _content(copy))


def _make_folder(top: str, path: str) -> bool:
    """Make a folder and those above it; False if something else is in its place."""
    for folder in (*folders_above(path), path) if path else ():
        if not os.path.lexists(os.path.join(top, folder)):
            os.mkdir(os.path.join(top, folder))
        elif not _is_folder(top, folder):
            return False
    return True


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _mode(top: str, path: str) -> int:
    """The mode of what is at a path; 0 for nothing, also where a folder above it is missing, a file or a link."""
    for folder in folders_above(path):
        above = os.path.join(top, folder)
        if not os.path.isdir(above) or os.path.islink(above):
            return 0
    try:
        return os.lstat(os.path.join(top, path)).st_mode
    except FileNotFoundError:
        return 0


def _is_folder(top: str, path: str) -> bool:
    return stat.S_ISDIR(_mode(top, path))


def _is_file(top: str, path: str) -> bool:
    """True for anything but a folder."""
    mode = _mode(top, path)
    return bool(mode) and not stat.S_ISDIR(mode)


def _content(path: str) -> bytes:
    return os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
