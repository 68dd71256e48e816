"""Both sides added imports: every name that either brought in.

Proof: the region is import statements and nothing else, so it is a set of names, and no side took one out. The file
itself is asked too: every name that was added is used in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.imports import go, python, rust, script
from rookery.merge.resolve.imports.model import Dialect, Statement, read
from rookery.merge.resolve.regions import Lines, Region
from rookery.merge.resolve.rules.additions import parsed
from rookery.merge.resolve.syntax import IMPORTS

NAME = "imports"

_DIALECTS: dict[str, Dialect] = {
    "python": python,
    "javascript": script,
    "typescript": script,
    "tsx": script,
    "go": go,
    "rust": rust,
}
_TALLEST = 60
"""How many lines a statement in brackets may have around a region."""
_INNER = (" ", "\t", ")", "}")
_WORD = re.compile(r"\w+")


def apply(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """The merged statements, in the order of ours."""
    dialect = _DIALECTS.get(file.language or "")
    if dialect is None:
        return None
    above, below = file.around(region)
    for up, down in _contexts(dialect, above, below):
        versions = (region.base, region.ours, region.theirs)
        base, ours, theirs = (read(dialect, (*up, *lines, *down)) for lines in versions)
        if base is None or ours is None or theirs is None:
            continue
        merged = _merged(dialect, base, ours, theirs)
        if merged is None or not _are_used(dialect, merged, base, file.elsewhere(region)):
            return None
        lines = _within(tuple(line for statement in merged for line in statement.lines), up, down)
        if lines is not None:
            return RuleAnswer(NAME, lines, "both sides added imports alone, and these are a set of names")
    return parsed(region, file, IMPORTS)  # whole statements, written in a way that is not read above


def _contexts(dialect: Dialect, above: Lines, below: Lines) -> Iterator[tuple[Lines, Lines]]:
    """The region alone, then with the statement around it that it may be a part of."""
    yield (), ()
    up = next((up for up in range(1, min(len(above), _TALLEST) + 1) if not above[-up].startswith(_INNER)), 0)
    if not up or read(dialect, above[-up:][:1]) is not None:
        # What stands above is a statement by itself, so the region begins with one.
        up = 0
    for down in range(min(len(below), _TALLEST) + 1):
        if (up or down) and (down == 0 or not below[down - 1].startswith((" ", "\t"))):
            yield above[len(above) - up :], below[:down]
            if down:
                return


def _within(lines: Lines, up: Lines, down: Lines) -> Lines | None:
    """Lines without the context that was read with them, if it is still there."""
    if lines[: len(up)] != up or (down and lines[-len(down) :] != down) or len(lines) < len(up) + len(down):
        return None
    return lines[len(up) : len(lines) - len(down)]


def _merged(
    dialect: Dialect, base: list[Statement], ours: list[Statement], theirs: list[Statement]
) -> list[Statement] | None:
    """Ours with what theirs added; None if a side took something out."""
    before, left, right = (_table(statements) for statements in (base, ours, theirs))
    if before is None or left is None or right is None:
        return None
    chosen: dict[str, Statement] = {}
    for key in {**left, **right}:
        statement = _chosen(dialect, before.get(key), left.get(key), right.get(key))
        if statement is None:
            return None
        chosen[key] = statement
    merged = [chosen.get(statement.key, statement) for statement in ours]
    for at, statement in enumerate(theirs):
        if statement.key and statement.key not in left:
            merged.insert(_place(merged, theirs, at), statement)
    return merged


def _table(statements: list[Statement]) -> dict[str, Statement] | None:
    """The statements by their keys; None if a key is there twice."""
    keyed = [statement for statement in statements if statement.key]
    table = {statement.key: statement for statement in keyed}
    return table if len(table) == len(keyed) else None


def _chosen(
    dialect: Dialect, base: Statement | None, ours: Statement | None, theirs: Statement | None
) -> Statement | None:
    """What becomes of one statement; None if it, or a name of it, was taken out."""
    if ours is None or theirs is None:
        return (ours or theirs) if base is None else None
    if ours.lines == theirs.lines:
        return ours
    if base is not None and not set(base.names) <= set(ours.names) & set(theirs.names):
        return None
    lines = dialect.write(ours, theirs)
    return None if lines is None else Statement(ours.key, tuple(dict.fromkeys((*ours.names, *theirs.names))), lines)


def _place(merged: list[Statement], side: list[Statement], at: int) -> int:
    """Where the order of all others puts it; without order, after the nearest statement before it on its own side."""
    if _is_sorted(merged) and _is_sorted(side):
        first = side[at].lines[0]
        later = (index for index, other in enumerate(merged) if other.key and other.lines[0] > first)
        return next(later, len(merged))
    places = {statement.key: index for index, statement in enumerate(merged) if statement.key}
    before = (places[statement.key] + 1 for statement in reversed(side[:at]) if statement.key in places)
    return next(before, 0 if at else len(merged))


def _is_sorted(statements: list[Statement]) -> bool:
    texts = [statement.lines[0] for statement in statements if statement.key]
    return texts == sorted(texts)


def _are_used(dialect: Dialect, merged: list[Statement], base: list[Statement], rest: Iterable[str]) -> bool:
    """True if the rest of the file uses every name that was added, and none comes from two places."""
    imported = [name for statement in merged for name in dialect.local(statement)]
    words = {word for line in rest for word in _WORD.findall(line)}
    added = set(imported) - {name for statement in base for name in dialect.local(statement)}
    return len(imported) == len(set(imported)) and added <= words
