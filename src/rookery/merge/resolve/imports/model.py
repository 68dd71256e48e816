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
    atomic: bool = False
    """True if it has no names that could come and go by themselves."""


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
    found: list[Statement] = []
    at = 0
    while at < len(lines):
        each = dialect.statement(lines, at) if lines[at].strip() else Statement("", (), ("",), atomic=True)
        if each is None:
            return None
        found.append(each)
        at += len(each.lines)
    return found


def split(names: str) -> tuple[str, ...]:
    """The names between commas."""
    return tuple(" ".join(name.split()) for name in names.split(",") if name.strip())


def read_bracket(
    lines: Lines, at: int, names: re.Pattern[str], close: re.Pattern[str]
) -> tuple[list[str], re.Match[str], Lines] | None:
    """The names in the lines behind one that opens a bracket, the line that closes it, and all of these lines."""
    found: list[str] = []
    end = at + 1
    while end < len(lines) and (inner := names.match(lines[end].rstrip())):
        found += split(inner[1])
        end += 1
    last = close.match(lines[end].rstrip()) if end < len(lines) else None
    return None if last is None else (found, last, lines[at : end + 1])


def ordered(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """All names in the order that both lists keep; where they keep none, the first's, then what the second adds."""
    names = dict.fromkeys((*first, *second))
    for order in (_exact, _folded, _by_case):
        if all(list(given) == sorted(given, key=order) for given in (first, second)):
            return tuple(sorted(names, key=order))
    return tuple(names)


def _exact(name: str) -> str:
    return name


def _folded(name: str) -> str:
    return name.removeprefix("type ").lower()


def _by_case(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then the rest: the order of isort."""
    bare = name.split(" ")[0]
    return not bare.isupper(), not bare[:1].isupper(), name
