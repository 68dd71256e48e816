"""An import statement: where from, which names, and how it stands there."""

from __future__ import annotations

from collections.abc import Callable
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

    def read(self, lines: Lines) -> list[Statement] | None:
        """The statements that these lines are; None if there is anything else, or less than a whole one."""

    def write(self, ours: Statement, theirs: Statement) -> Lines | None:
        """One statement with the names of both; None if a line of either would have to be another."""

    def local(self, statement: Statement) -> tuple[str, ...]:
        """What the file calls the things that a statement brings in; empty if it brings in no name."""


def read_by(lines: Lines, statement_at: Callable[[int], Statement | None]) -> list[Statement] | None:
    """All that the lines are, blank ones included; None where no statement begins."""
    found: list[Statement] = []
    at = 0
    while at < len(lines):
        each = statement_at(at) if lines[at].strip() else Statement("", (), ("",), atomic=True)
        if each is None:
            return None
        found.append(each)
        at += len(each.lines)
    return found


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
