"""An import statement: where from, which names, and how it stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from rookery.base.record import Record
from rookery.merge.resolve.regions import Lines


@dataclass(frozen=True, slots=True)
class Statement(Record):
    """One statement. Two with the same key may become one with the names of both."""

    key: str
    names: tuple[str, ...]
    lines: Lines
    """As it stands there; a blank line has an empty key."""


class Dialect(Protocol):
    """How one language writes imports."""

    def statement(self, lines: Lines, at: int) -> Statement | None:
        """The statement that begins at a line; None if there is anything else, or less than a whole one."""

    def write(self, ours: Statement, theirs: Statement) -> Lines | None:
        """One statement with the names of both; None if a line of either would have to be another."""

    def local(self, statement: Statement) -> tuple[str, ...]:
        """What the file calls the things that a statement brings in; empty if it brings in no name."""


def read(dialect: Dialect, lines: Lines) -> list[Statement] | None:
    """All that the lines are, blank ones included; None where no statement begins."""
    statements: list[Statement] = []
    at = 0
    while at < len(lines):
        statement = dialect.statement(lines, at) if lines[at].strip() else Statement("", (), ("",))
        if statement is None:
            return None
        statements.append(statement)
        at += len(statement.lines)
    return statements


def split(names: str) -> tuple[str, ...]:
    """The names between commas."""
    return tuple(" ".join(name.split()) for name in names.split(",") if name.strip())


def read_bracket(
    lines: Lines, at: int, names: re.Pattern[str], close: re.Pattern[str]
) -> tuple[list[str], re.Match[str], Lines] | None:
    """The names in a bracket that a line opens, the line that closes it, and all of these lines."""
    inside: list[str] = []
    end = at + 1
    while end < len(lines) and (inner := names.match(lines[end].rstrip())):
        inside += split(inner[1])
        end += 1
    last = close.match(lines[end].rstrip()) if end < len(lines) else None
    return None if last is None else (inside, last, lines[at : end + 1])


def write_bracket(ours: Statement, theirs: Statement, last_comma: str) -> Lines | None:
    """A bracket with the names of both, one a line, if both are such."""
    if any(len(statement.lines) != len(statement.names) + 2 for statement in (ours, theirs)):
        return None
    inner, names = ours.lines[1], ordered(ours.names, theirs.names)
    indent = inner[: len(inner) - len(inner.lstrip())]
    listed = [f"{indent}{name}," for name in names]
    listed[-1] = listed[-1][:-1] + last_comma
    return (ours.lines[0], *listed, ours.lines[-1])


def ordered(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """All names in the order that both lists keep; where they keep none, the first's, then what the second adds."""
    names = dict.fromkeys((*first, *second))
    for order in (str, _folded, _by_case):
        if all(list(some) == sorted(some, key=order) for some in (first, second)):
            return tuple(sorted(names, key=order))
    return tuple(names)


def _folded(name: str) -> str:
    return name.removeprefix("type ").lower()


def _by_case(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then the rest: the order of isort."""
    bare = name.split(" ")[0]
    return not bare.isupper(), not bare[:1].isupper(), name
