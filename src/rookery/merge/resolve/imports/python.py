"""Python's `import a` and `from a import b, c`, on one line or in brackets."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, ordered, read_by
from rookery.merge.resolve.regions import Lines

_WHOLE = re.compile(r"^(\s*)import ([\w.]+(?: as \w+)?)$")
_FROM = re.compile(r"^(\s*)from (\.*[\w.]*) import ([\w, ]+|\*)$")
_OPEN = re.compile(r"^(\s*)from (\.*[\w.]*) import \(([\w, ]*)$")
_NAMES = re.compile(r"^\s*([\w, ]+)$")
_CLOSE = re.compile(r"^\s*([\w, ]*)\)$")


def read(lines: Lines) -> list[Statement] | None:
    """The statements that these lines are."""
    return read_by(lines, lambda at: _statement(lines, at))


def _statement(lines: Lines, at: int) -> Statement | None:
    line = lines[at].rstrip()
    if match := _WHOLE.match(line):
        return Statement(f"{match[1]}import {match[2]}", (match[2],), (lines[at],), atomic=True)
    if match := _FROM.match(line):
        return Statement(f"{match[1]}from {match[2]}", _split(match[3]), (lines[at],), atomic=match[3] == "*")
    match = _OPEN.match(line)
    if match is None:
        return None
    names = list(_split(match[3]))
    end = at + 1
    while end < len(lines) and (inner := _NAMES.match(lines[end].rstrip())):
        names += _split(inner[1])
        end += 1
    last = _CLOSE.match(lines[end].rstrip()) if end < len(lines) else None
    if last is None:
        return None
    return Statement(f"{match[1]}from {match[2]}", (*names, *_split(last[1])), lines[at : end + 1])


def write(ours: Statement, theirs: Statement) -> Lines | None:
    """A bracket with one name a line, if both are such."""
    if any(len(each.lines) != len(each.names) + 2 for each in (ours, theirs)):
        return None
    inner, names = ours.lines[1], ordered(ours.names, theirs.names)
    indent = inner[: len(inner) - len(inner.lstrip())]
    return (ours.lines[0], *(f"{indent}{name}," for name in names), ours.lines[-1])


def local(statement: Statement) -> tuple[str, ...]:
    """The last word of `a as b`, the first part of a whole module's name."""
    if statement.atomic:
        return tuple(name.rpartition(" as ")[2].partition(".")[0] for name in statement.names if name != "*")
    return tuple(name.rpartition(" as ")[2] for name in statement.names)


def _split(names: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in names.split(",") if name.strip())
