"""Python's `import a` and `from a import b, c`, on one line or in brackets."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, read_bracket, split, write_bracket
from rookery.merge.resolve.regions import Lines

_WHOLE = re.compile(r"^(\s*)import ([\w.]+(?: as \w+)?)$")
_FROM = re.compile(r"^(\s*)from (\.*[\w.]*) import ([\w, ]+|\*)$")
_OPEN = re.compile(r"^(\s*)from (\.*[\w.]*) import \(([\w, ]*)$")
_NAMES = re.compile(r"^\s*([\w, ]+)$")
_CLOSE = re.compile(r"^\s*([\w, ]*)\)$")


def statement(lines: Lines, at: int) -> Statement | None:
    """The statement that begins at a line."""
    line = lines[at].rstrip()
    if match := _WHOLE.match(line):
        return Statement(f"{match[1]}import {match[2]}", (match[2],), (lines[at],))
    if match := _FROM.match(line):
        return Statement(f"{match[1]}from {match[2]}", split(match[3]), (lines[at],))
    match, bracket = _OPEN.match(line), read_bracket(lines, at, _NAMES, _CLOSE)
    if match is None or bracket is None:
        return None
    names, last, whole = bracket
    return Statement(f"{match[1]}from {match[2]}", (*split(match[3]), *names, *split(last[1])), whole)


def write(ours: Statement, theirs: Statement) -> Lines | None:
    """A bracket with one name a line, if both are such."""
    return write_bracket(ours, theirs, ",")


def local(statement: Statement) -> tuple[str, ...]:
    """The last word of `a as b`, the first part of a whole module's name."""
    return tuple(name.rpartition(" as ")[2].partition(".")[0] for name in statement.names if name != "*")
