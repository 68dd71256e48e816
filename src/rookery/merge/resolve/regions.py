"""A three-way merge of lines: where one side alone changed something, and where both did.

Changes that touch each other count as one, as they do for git: whether they belong together is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.resolve.diff import matching

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Region(Record):
    """A stretch of the base, and what each side has in its place. Settled where at most one side changed it."""

    start: int
    """The line of the base, counted from 0, where it begins."""
    ours_start: int
    theirs_start: int
    base: Lines
    ours: Lines
    theirs: Lines

    @property
    def settled(self) -> Lines | None:
        """What a three-way merge makes of it; None if it is in conflict."""
        if self.ours in (self.theirs, self.base):
            return self.theirs
        return self.ours if self.theirs == self.base else None


def regions(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Region]:
    """The whole file in order: stretches that nobody changed, and between them stretches that somebody did."""
    base, ours, theirs = tuple(base), tuple(ours), tuple(theirs)
    in_ours, in_theirs = _mapped(base, ours), _mapped(base, theirs)
    b = o = t = 0
    while True:
        i = b
        while i < len(base) and (in_ours[i] < 0 or in_theirs[i] < 0):
            i += 1
        to_ours, to_theirs = (in_ours[i], in_theirs[i]) if i < len(base) else (len(ours), len(theirs))
        if i > b or to_ours > o or to_theirs > t:
            yield Region(b, o, t, base[b:i], ours[o:to_ours], theirs[t:to_theirs])
        if i == len(base):
            return
        size = 1
        while i + size < len(base) and in_ours[i + size] == to_ours + size and in_theirs[i + size] == to_theirs + size:
            size += 1
        kept = base[i : i + size]
        yield Region(i, to_ours, to_theirs, kept, kept, kept)
        b, o, t = i + size, to_ours + size, to_theirs + size


def _mapped(base: Lines, side: Lines) -> list[int]:
    """For each line of the base the line of the side that it became, or -1."""
    places = [-1] * len(base)
    for i, j, size in matching(base, side):
        places[i : i + size] = range(j, j + size)
    return places
