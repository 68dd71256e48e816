"""The files that an agent may change (`rook sling --files`): files, folders and patterns, relative to the repository.

The guard, hand-ins, landings and slings all ask here, so that they agree. Upper and lower case count. A pattern that
names a folder covers all that is in it. `*`, `?` and `[…]` stand for a part of one name, `**` for any number of
folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from rookery.base.json import dumps
from rookery.base.text import visible

_MARKS = "*?["


def is_in_scope(path: Sequence[str], scope: Iterable[str], *, makes_folder: bool = False) -> bool:
    """True if one of the patterns covers a path, given by its parts; a folder that leads to one may be made, too."""
    for pattern in scope:
        parts = _parts(pattern)
        if _covers(parts, path) or (makes_folder and _covers(parts[: len(path)], path)):
            return True
    return False


def outside_scope(paths: Iterable[str], scope: Sequence[str]) -> tuple[str, ...]:
    """Those of some paths of the repository that no pattern covers."""
    patterns = [_parts(pattern) for pattern in scope]
    return tuple(path for path in paths if not any(_covers(parts, path.split("/")) for parts in patterns))


def overlapping_patterns(ours: Iterable[str], theirs: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of patterns that surely have something in common, whatever files there are.

    Of two different patterns with wildcards in the same place only the files that there are can tell.
    """
    return [(one, other) for one in ours for other in theirs if _overlap(_parts(one), _parts(other))]


def quote_name(path: str) -> str:
    """A file's name on one line for people: as it is, or as a JSON string if anything in it could mislead.

    No two files have the same text, and any database can keep it.
    """
    is_plain = visible(path) == path and not any(char in path for char in "\n\t") and not path.startswith('"')
    return path if is_plain and path == path.strip() else dumps(path, ascii=True)


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in ("", ".")]


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """True if the pattern names the path or a folder that it is in; `**` stands for any number of folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_covers(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _covers(pattern[1:], path[1:])


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if one names a folder that the other leads into, or both name the same."""
    if not one or not other:
        return True
    if one[0] == "**":
        return any(_overlap(one[1:], other[skip:]) for skip in range(len(other) + 1))
    if other[0] == "**":
        return _overlap(other, one)
    return _may_be_same(one[0], other[0]) and _overlap(one[1:], other[1:])


def _may_be_same(one: str, other: str) -> bool:
    if one == other:
        return True
    one_is_glob, other_is_glob = (any(mark in name for mark in _MARKS) for name in (one, other))
    if one_is_glob == other_is_glob:
        return False
    return fnmatchcase(other, one) if one_is_glob else fnmatchcase(one, other)
