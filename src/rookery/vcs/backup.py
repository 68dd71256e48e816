"""The files that a checkout is about to lose, kept so that they can be put back byte for byte, on a full disk too.

Git never writes into a file of a checkout: it removes it and makes another. So a second name for the old file (a hard
link) keeps its content, times and mode, costs no room, and tells by its inode whether the file was replaced at all.
Where there can be no link, on another filesystem, there is a copy.

Putting back removes first what git has written, which makes room, and only then brings the old files. It can be
repeated: killed anywhere, or stopped by a full disk, the next try starts from what lies there. A file that is neither
what was kept nor what git was writing belongs to the user and stays.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
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
    """Keep what lies at the paths that are about to change; `place` is there only once all of it is."""
    half = f"{place}.half"
    os.mkdir(half)
    kept: dict[str, str] = {}
    folders: list[str] = []
    new_folders: dict[str, None] = {}
    for change in changed:
        before = _lstat(top, change.path)
        if before is not None and stat.S_ISDIR(before.st_mode):
            folders.append(change.path)
        elif before is not None:
            kept[change.path] = str(len(kept))
            _link_or_copy(os.path.join(top, change.path), os.path.join(half, kept[change.path]))
        above = list(_folders_above(change.path)) + ([change.path] if change.new_mode == _MODULE else [])
        new_folders.update((each, None) for each in above if not change.is_deleted and not _is_folder(top, each))
    with open(os.path.join(half, _PLAN), "w", encoding="utf-8") as file:
        json.dump(_Plan(kept, folders, list(new_folders)).as_dict(), file)
    os.rename(half, place)


def restore(store: GitStore, top: str, changed: Sequence[TreeChange], place: str) -> list[str]:
    """Put back what was kept; gives the files that were changed by someone else meanwhile and stay as they are."""
    plan = _read_plan(place)
    differ = [each for each in changed if not _is_as_before(top, each.path, plan, place)]
    there = [each for each in differ if _is_file(top, each.path)]
    removable = written_by_git(store, top, there) | {
        each.path for each in there if _is_begun(top, each.path, plan, place)
    }
    for path in removable:
        os.unlink(os.path.join(top, path))
    for folder in sorted(plan.new_folders, key=len, reverse=True):
        if _is_folder(top, folder) and not os.listdir(os.path.join(top, folder)):
            os.rmdir(os.path.join(top, folder))
    for folder in plan.folders:
        _make_folder(top, folder)
    for each in differ:
        if each.path in plan.kept:
            _put_back(top, each.path, plan, place)
    return [each.path for each in differ if not _is_as_before(top, each.path, plan, place)]


def written_by_git(store: GitStore, top: str, changed: Sequence[TreeChange]) -> set[str]:
    """The paths at which lies what the new commit has there, or the beginning of it.

    Where a filter of the user's makes a file from what is committed, it may fail now: a whole file is known by what it
    would be committed as, and only one that is cut off by what the filter makes.
    """
    wanted = [each for each in changed if not each.is_deleted and each.new_mode != _MODULE]
    committed = _hash(store, top, [each.path for each in wanted if _is_regular(top, each.path)])
    return {each.path for each in wanted if committed.get(each.path) == each.new_oid or _is_beginning(store, top, each)}


def _hash(store: GitStore, top: str, paths: Sequence[str]) -> dict[str, str]:
    """What each file would be committed as."""
    if not paths:
        return {}
    lines = "".join(f"{_quoted(path)}\n" for path in paths)
    done = store.run("hash-object", "--stdin-paths", stdin=lines)
    return dict(zip(paths, done.stdout.split(), strict=False)) if done.ok else {}


def _quoted(path: str) -> str:
    """A path as git reads it from a line."""
    if "\n" not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _is_beginning(store: GitStore, top: str, change: TreeChange) -> bool:
    full = os.path.join(top, change.path)
    if not os.path.islink(full) and not _is_regular(top, change.path):
        return False
    content = _content(full)
    if not content:
        return True
    how = ("blob",) if change.new_mode == _LINK else ("--filters", f"--path={change.path}")
    words = ("cat-file", *how, change.new_oid)
    with suppress(ProgramFailed):
        return store.read_bytes(*words).startswith(content)
    return False


def _is_as_before(top: str, path: str, plan: _Plan, place: str) -> bool:
    now = _lstat(top, path)
    if path in plan.folders:
        return now is not None and stat.S_ISDIR(now.st_mode)
    if path not in plan.kept:
        return now is None or stat.S_ISDIR(now.st_mode)
    copy = os.path.join(place, plan.kept[path])
    before = os.lstat(copy)
    if now is None or now.st_mode != before.st_mode:
        return False
    if os.path.samestat(now, before):
        return True
    return now.st_size == before.st_size and _content(os.path.join(top, path)) == _content(copy)


def _is_begun(top: str, path: str, plan: _Plan, place: str) -> bool:
    """True if a file is the beginning of the one that was kept: a restore was cut off while it copied."""
    if path not in plan.kept or not _is_regular(top, path):
        return False
    return _content(os.path.join(place, plan.kept[path])).startswith(_content(os.path.join(top, path)))


def _put_back(top: str, path: str, plan: _Plan, place: str) -> None:
    """Bring a file back, unless something of the user's is there or in place of a folder above it."""
    full = os.path.join(top, path)
    if _make_folder(top, os.path.dirname(path)) and not os.path.lexists(full):
        _link_or_copy(os.path.join(place, plan.kept[path]), full)


def _make_folder(top: str, path: str) -> bool:
    """Make a folder and those above it; False if something else is in its place."""
    for each in (*_folders_above(path), path) if path else ():
        if not os.path.lexists(os.path.join(top, each)):
            os.mkdir(os.path.join(top, each))
        elif not _is_folder(top, each):
            return False
    return True


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _read_plan(place: str) -> _Plan:
    with open(os.path.join(place, _PLAN), encoding="utf-8") as file:
        return _Plan(**json.load(file))


def _folders_above(path: str) -> Iterator[str]:
    """The folders above a path, from the top."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])


def _lstat(top: str, path: str) -> os.stat_result | None:
    """What lies at a path; nothing if a folder above it is missing, a file or a link to elsewhere."""
    for each in _folders_above(path):
        above = os.path.join(top, each)
        if not os.path.isdir(above) or os.path.islink(above):
            return None
    try:
        return os.lstat(os.path.join(top, path))
    except FileNotFoundError:
        return None


def _is_folder(top: str, path: str) -> bool:
    found = _lstat(top, path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _is_file(top: str, path: str) -> bool:
    found = _lstat(top, path)
    return found is not None and not stat.S_ISDIR(found.st_mode)


def _is_regular(top: str, path: str) -> bool:
    found = _lstat(top, path)
    return found is not None and stat.S_ISREG(found.st_mode)


def _content(path: str) -> bytes:
    if os.path.islink(path):
        return os.fsencode(os.readlink(path))
    with open(path, "rb") as file:
        return file.read()
