"""The files that an agent may change (`rook sling --files`): files, folders and patterns, relative to the repository.

The guard, hand-ins, landings and slings all ask here, so that they agree. Upper and lower case count. A pattern that
names a folder covers all that is in it. `*`, `?` and `[…]` stand for a part of one name, `**` for any number of
folders. A name with such characters, as in `app/[id]/page.tsx`, also stands for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from rookery.base.errors import InvalidInput
from rookery.base.json import dumps
from rookery.base.text import visible


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns, if all of them can name files of the repository; else raises InvalidInput."""
    for pattern in patterns:
        if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            raise InvalidInput(
                f"{quote_name(pattern)} is not a file in the repository",
                hint="name files from the top of the repository on, such as `src/api`; `.` is all of it",
            )
        if pattern.count("{") != pattern.count("}"):
            hint = "name each file by itself: `--files a.py,b.py`"
            raise InvalidInput(f"{quote_name(pattern)} has half a pair of braces, which stand for nothing", hint=hint)
    return tuple(patterns)


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
    """The pairs of patterns for which there can be a file that both cover, whether there is one now or not.

    That is exact: `src/*.py` and `src/a*` overlap, because of `src/a.py`; `src/*.py` and `src/*.md` never do.
    """
    return [(one, other) for one in ours for other in theirs if _overlap(tuple(_parts(one)), tuple(_parts(other)))]


def quote_name(path: str) -> str:
    """A file's name on one line for people: as it is, or as a JSON string if anything in it could mislead.

    No two files have the same text, and any database can keep it.
    """
    is_plain = visible(path) == path and not any(char in path for char in "\n\t") and not path.startswith('"')
    return path if is_plain and path == path.strip() else dumps(path, ascii=True)


def _parts(pattern: str) -> list[str]:
    """The names of a pattern; several `**` in a row are one."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """True if the pattern names the path or a folder that it is in; `**` stands for any number of folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_covers(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and _matches(path[0], pattern[0]) and _covers(pattern[1:], path[1:])


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


@lru_cache(maxsize=4096)  # without it several `**` would be compared over and over
def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """True if there can be a path that both cover."""
    if not one or not other:
        return True
    if one[0] == "**":
        return any(_overlap(one[1:], other[skip:]) for skip in range(len(other) + 1))
    if other[0] == "**":
        return _overlap(other, one)
    return _names_overlap(one[0], other[0]) and _overlap(one[1:], other[1:])


def _names_overlap(one: str, other: str) -> bool:
    """True if there is a name that both patterns match: the beginnings of both are compared, from short to long."""
    if _matches(one, other) or _matches(other, one):
        return True
    ours, theirs = _units(one), _units(other)
    above = [False] * (len(theirs) + 1)
    for i in range(len(ours) + 1):
        row: list[bool] = []
        for j in range(len(theirs) + 1):
            left, mine, its = j > 0 and row[-1], ours[i - 1] if i else "", theirs[j - 1] if j else ""
            if not i and not j:
                row.append(True)
            elif "*" in (mine, its):  # a star is over, or goes on with what the other has
                row.append((mine == "*" and (above[j] or left)) or (its == "*" and (left or above[j])))
            else:
                row.append(bool(i and j) and above[j - 1] and _have_common_character(mine, its))
        above = row
    return above[-1]


def _units(pattern: str) -> list[str]:
    """The parts of a name's pattern that stand for one character each, or are a star; as `fnmatch` reads them."""
    units, at = [], 0
    while at < len(pattern):
        closed = pattern.find("]", at + (3 if pattern.startswith("[!", at) else 2)) if pattern[at] == "[" else -1
        end = closed + 1 if closed >= 0 else at + 1
        units.append(pattern[at:end])
        at = end
    return units


def _have_common_character(one: str, other: str) -> bool:
    """True if two units match the same character.

    If any is common, then so is one where a range of either begins, or that comes right after one that either names.
    """
    codes = {0, *(ord(char) + more for char in (*one, *other, "/") for more in (0, 1))}
    characters = [chr(code) for code in codes if code <= sys.maxunicode and code != ord("/")]
    return any(fnmatchcase(char, one) and fnmatchcase(char, other) for char in characters)
