"""The files that a checkout is about to lose, kept so that they can be put back byte for byte, on a full disk too.

Git never writes into a file of a checkout: it removes it and makes another. So a second name for the old file (a hard
link) keeps its content, times and mode, costs no room, and shows by its inode whether the file was replaced at all.
Where there can be no link, on another filesystem, there is a copy.

Putting back first removes what git has written, which makes room, and only then brings the old files. It can be
repeated: killed anywhere, or stopped by a full disk, the next try starts from what is there. A file that is neither
what was kept nor what git was writing belongs to the user and stays.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.vcs.folders import folders_above
from rookery.vcs.git.repository import GitStore
from rookery.vcs.git.tree_diff import TreeChange

_PLAN = "plan"
_LINK, _MODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class _Plan(Record):
    """What there was: files by the names of their copies, and folders; `new_folders` were not there."""

    kept: dict[str, str]
    folders: list[str]
    new_folders: list[str]


def keep(top: str, changed: Iterable[TreeChange], place: str) -> None:
    """Keep the files at the paths that are about to change; `place` exists only once all of them are kept."""
    half = f"{place}.half"
    os.mkdir(half)
    kept: dict[str, str] = {}
    folders: list[str] = []
    new_folders: dict[str, None] = {}
    for change in changed:
        mode = _mode(top, change.path)
        if stat.S_ISDIR(mode):
            folders.append(change.path)
        elif mode:
            kept[change.path] = str(len(kept))
            _link_or_copy(os.path.join(top, change.path), os.path.join(half, kept[change.path]))
        if not change.is_deleted:
            needed = folders_above(change.path) + ([change.path] if change.new_mode == _MODULE else [])
            new_folders.update((folder, None) for folder in needed if not _is_folder(top, folder))
    with open(os.path.join(half, _PLAN), "w", encoding="utf-8") as file:
        json.dump(_Plan(kept, folders, list(new_folders)).as_dict(), file)
    os.rename(half, place)


def restore(store: GitStore, top: str, changed: Sequence[TreeChange], place: str) -> list[str]:
    """Put back what was kept; returns the files that another process has changed meanwhile, which stay as they are."""
    with open(os.path.join(place, _PLAN), encoding="utf-8") as file:
        plan = _Plan(**json.load(file))
    copies = {path: os.path.join(place, name) for path, name in plan.kept.items()}

    def is_restored(path: str) -> bool:
        if path in plan.folders:
            return _is_folder(top, path)
        mode = _mode(top, path)
        return _is_same(top, path, copies[path]) if path in copies else not mode or stat.S_ISDIR(mode)

    differ = [change for change in changed if not is_restored(change.path)]
    there = [change for change in differ if _mode(top, change.path) and not _is_folder(top, change.path)]
    # A file that is the beginning of its copy comes from a restore that was stopped while it copied.
    begun = {change.path for change in there if _is_beginning_of(top, change.path, copies.get(change.path))}
    for path in written_by_git(store, top, there) | begun:
        os.unlink(os.path.join(top, path))
    for folder in sorted(plan.new_folders, key=len, reverse=True):
        if _is_folder(top, folder) and not os.listdir(os.path.join(top, folder)):
            os.rmdir(os.path.join(top, folder))
    for folder in plan.folders:
        _make_folder(top, folder)
    for path in (change.path for change in differ if change.path in copies):
        # Unless a file of the user's is there, or in place of a folder above it.
        if _make_folder(top, os.path.dirname(path)) and not os.path.lexists(os.path.join(top, path)):
            _link_or_copy(copies[path], os.path.join(top, path))
    return [change.path for change in differ if not is_restored(change.path)]


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


def _is_beginning_of(top: str, path: str, copy: str | None) -> bool:
    is_file = copy is not None and stat.S_ISREG(_mode(top, path))
    return is_file and _content(str(copy)).startswith(_content(os.path.join(top, path)))


def _is_same(top: str, path: str, copy: str) -> bool:
    """True if a file is the one that was kept, or equal to its copy."""
    full, before = os.path.join(top, path), os.lstat(copy)
    if _mode(top, path) != before.st_mode:
        return False
    now = os.lstat(full)
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


def _content(path: str) -> bytes:
    return os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
