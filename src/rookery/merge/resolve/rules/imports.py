"""Both sides changed import statements: every name that either brought in, none that either took out.

Proof: the region is import statements and nothing else, so it is a set of names, and sets merge exactly. The file
itself is asked too: a name that a side added is used in it, and a name that is left out is not.
"""

from __future__ import annotations

import re

from rookery.merge.resolve.case import Answer
from rookery.merge.resolve.imports import go, python, rust, script
from rookery.merge.resolve.imports.model import Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rookery.merge.resolve.case import Case
    from rookery.merge.resolve.imports.model import Dialect
    from rookery.merge.resolve.regions import Lines, Region

NAME = "imports"

_DIALECTS: dict[str, Dialect] = {
    "python": python,
    "javascript": script,
    "typescript": script,
    "tsx": script,
    "go": go,
    "rust": rust,
}
_NARROW, _WIDE = 79, 120
_TALLEST = 60
"""How many lines a statement in brackets may have around a region."""
_INNER = (" ", "\t", ")", "}")
_WORD = re.compile(r"\w+")


def apply(region: Region, case: Case) -> Answer | None:
    """The merged statements, in the order of ours."""
    dialect = _DIALECTS.get(case.language or "")
    if dialect is None:
        return None
    above, below = case.around(region)
    for up, down in _contexts(dialect, above, below):
        read = [dialect.read((*up, *lines, *down)) for lines in (region.base, region.ours, region.theirs)]
        if read[0] is None or read[1] is None or read[2] is None:
            continue
        merged = _merged(dialect, read[0], read[1], read[2], _width(case))
        if merged is None or not _agrees(dialect, merged, [read[0], read[1], read[2]], case.elsewhere(region)):
            return None
        lines = _within(tuple(line for statement in merged for line in statement.lines), up, down)
        if lines is not None:
            return Answer(NAME, lines, "both sides changed imports alone, and these are a set of names", drops=True)
    return None


def _contexts(dialect: Dialect, above: Lines, below: Lines) -> Iterator[tuple[Lines, Lines]]:
    """The region alone, then with the statement around it that it may be a part of."""
    yield (), ()
    up = next((up for up in range(1, min(len(above), _TALLEST) + 1) if not above[-up].startswith(_INNER)), 0)
    if not up or dialect.read(above[-up:][:1]) is not None:
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
    dialect: Dialect, base: list[Statement], ours: list[Statement], theirs: list[Statement], width: int
) -> list[Statement] | None:
    """Ours with what theirs added, changed and took out."""
    tables = [_table(statements) for statements in (base, ours, theirs)]
    if any(table is None for table in tables):
        return None
    before, left, right = (table or {} for table in tables)
    chosen: dict[str, Statement | None] = {}
    for key in {**left, **right}:
        statement = _chosen(dialect, before.get(key), left.get(key), right.get(key), width)
        if statement is None:
            return None
        chosen[key] = statement if statement.lines else None
    made: list[Statement] = []
    for each in ours:
        kept = chosen[each.key] if each.key else each
        if kept is not None:
            made.append(kept)
    for at, each in enumerate(theirs):
        if each.key and each.key not in left and chosen[each.key] is not None:
            made.insert(_place(made, theirs, at), chosen[each.key] or each)
    return made


def _table(statements: list[Statement]) -> dict[str, Statement] | None:
    found = {each.key: each for each in statements if each.key}
    return found if len(found) == sum(1 for each in statements if each.key) else None


def _chosen(
    dialect: Dialect, base: Statement | None, ours: Statement | None, theirs: Statement | None, width: int
) -> Statement | None:
    """What becomes of one statement; without lines if it goes; None if that cannot be said."""
    if ours is None or theirs is None:
        there = ours or theirs
        if base is None or there is None:
            return there
        # One side took it out. If the other changed it, that is an edit against a deletion.
        return Statement("", (), ()) if set(there.names) == set(base.names) else None
    if ours.lines == theirs.lines or (base is not None and theirs.lines == base.lines):
        return ours
    if base is not None and ours.lines == base.lines:
        return theirs
    was = set(base.names) if base else set()
    left, right = set(ours.names), set(theirs.names)
    names = (was & left & right) | (left - was) | (right - was)
    if not names:
        return None
    reshaped = [each for each in (ours, theirs) if base is None or _shape(each) != _shape(base)]
    for each in reshaped or (ours, theirs):
        if set(each.names) == names and (each.names != base.names if base else True):
            return each
    if (left | right) - names:
        # To take a name out and put another in, in one new line, is more than people agree with.
        return None
    like = tuple(reshaped) or (ours, theirs)
    order = tuple(dict.fromkeys(name for each in (ours, theirs) for name in each.names if name in names))
    lines = dialect.write(like, order, width)
    return None if lines is None else Statement(ours.key, order, lines)


def _shape(statement: Statement) -> bool:
    return len(statement.lines) > 1


def _place(made: list[Statement], side: list[Statement], at: int) -> int:
    """Where the order of all others wants it; without order, after the nearest statement before it on its own side."""
    if _in_order(made) and _in_order(side):
        later = (index for index, each in enumerate(made) if each.key and each.lines[0] > side[at].lines[0])
        return next(later, len(made))
    for each in reversed(side[:at]):
        for index, there in enumerate(made):
            if each.key and there.key == each.key:
                return index + 1
    return 0 if at else len(made)


def _in_order(statements: list[Statement]) -> bool:
    texts = [each.lines[0] for each in statements if each.key]
    return texts == sorted(texts)


def _agrees(dialect: Dialect, merged: list[Statement], read: list[list[Statement]], rest: Iterable[str]) -> bool:
    """True if the rest of the file uses what was added, and does not use what is left out."""
    base, ours, theirs = ({name: each.key for each in side for name in dialect.local(each)} for side in read)
    brought = [name for each in merged for name in dialect.local(each)]
    if len(brought) != len(set(brought)):
        return False
    if any(base[name] != side[name] for side in (ours, theirs) for name in base.keys() & side.keys()):
        # The name comes from elsewhere now: what else the other side takes from the old place may have gone along.
        return False
    words = {word for line in rest for word in _WORD.findall(line)}
    added, dropped = set(brought) - set(base), (ours.keys() | theirs.keys()) - set(brought)
    return added <= words and not dropped & words


def _width(case: Case) -> int:
    longest = max(map(len, case.base or case.ours), default=0)
    return min(max(longest, _NARROW), _WIDE)
