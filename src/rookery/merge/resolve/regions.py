"""A three-way merge of lines: where one side alone changed something, and where both did.

Changes that touch each other count as one, as they do for git: whether they belong together is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.resolve.diff import Block, matching
from rookery.merge.resolve.model import OURS

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

    def lines_of(self, side: str) -> Lines:
        """What one side has here."""
        return self.ours if side == OURS else self.theirs


def regions(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Region]:
    """The whole file in order: stretches that no side changed, and between them stretches that one or both did."""
    stretches = _stretches(tuple(base), tuple(ours), tuple(theirs))
    return (region for region in stretches if region.base or region.ours or region.theirs)


def _stretches(base: Lines, ours: Lines, theirs: Lines) -> Iterator[Region]:
    b = o = t = 0
    for start, ours_start, theirs_start, size in _common(matching(base, ours), matching(base, theirs)):
        yield Region(b, o, t, base[b:start], ours[o:ours_start], theirs[t:theirs_start])
        same = base[start : start + size]
        yield Region(start, ours_start, theirs_start, same, same, same)
        b, o, t = start + size, ours_start + size, theirs_start + size
    yield Region(b, o, t, base[b:], ours[o:], theirs[t:])


def _common(in_ours: list[Block], in_theirs: list[Block]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines that all three have: where each begins in the base, in ours and in theirs, and its length."""
    at_ours = at_theirs = 0
    while at_ours < len(in_ours) and at_theirs < len(in_theirs):
        left, ours, left_size = in_ours[at_ours]
        right, theirs, right_size = in_theirs[at_theirs]
        start, end = max(left, right), min(left + left_size, right + right_size)
        if start < end:
            yield start, ours + start - left, theirs + start - right, end - start
        if end == left + left_size:
            at_ours += 1
        else:
            at_theirs += 1
