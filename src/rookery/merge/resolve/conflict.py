"""One file in conflict, as the rules see it: its lines, its syntax, and the earlier versions on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Tree

from rookery.base.record import Record
from rookery.merge.resolve import text
from rookery.merge.resolve.languages import language_of, tree_of
from rookery.merge.resolve.model import OURS, Sides
from rookery.merge.resolve.regions import Lines, Region, regions
from rookery.merge.resolve.syntax import Units, units
from rookery.merge.resolve.text import Text


@dataclass(frozen=True, slots=True)
class RuleAnswer(Record):
    """What one rule makes of one region."""

    rule: str
    lines: Lines
    why: str
    drops: bool = False
    """True if lines are changed or left out, and the proof says why they may be."""
    replaces: bool = False
    """True if a line of a side need not be there, because another stands for it."""


class Side:
    """What one side has; its tree and its earlier versions are read only when a rule asks for them."""

    def __init__(self, lines: Lines, history: Sequence[bytes], language: str | None) -> None:
        self.lines = lines
        self._history = history
        self._language = language

    @cached_property
    def text(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)

    @cached_property
    def stripped(self) -> frozenset[str]:
        """Every line without the blanks around it."""
        return frozenset(map(str.strip, self.lines))

    @cached_property
    def versions(self) -> list[str]:
        """The texts of the earlier versions, newest first."""
        return ["\n".join(version.lines) for version in map(text.read, self._history) if version is not None]

    def units(self, lines: Lines, start: int) -> Units | None:
        """What a stretch of the side is made of; None if that is not whole nodes, or if the side does not parse."""
        return None if self._tree is None else units(self._tree, lines, start)

    @cached_property
    def _tree(self) -> Tree | None:
        tree = tree_of(self._language, self.text.encode()) if self._language else None
        return None if tree is None or tree.root_node.has_error else tree


class ConflictedFile:
    """A conflicted file, and what the rules have answered so far."""

    def __init__(self, sides: Sides, base: Text, ours: Text, theirs: Text, unions: tuple[str, ...]) -> None:
        self.path = sides.path
        self.language = language_of(sides.path)
        self.base = Side(base.lines, (), self.language)
        self.ours = Side(ours.lines, sides.ours_history, self.language)
        self.theirs = Side(theirs.lines, sides.theirs_history, self.language)
        self.texts = (None if sides.base is None else base, ours, theirs)
        self.unions = unions
        self.regions = tuple(regions(base.lines, ours.lines, theirs.lines))
        self.answers: dict[Region, RuleAnswer] = {}

    def side(self, name: str) -> Side:
        """One of the two."""
        return self.ours if name == OURS else self.theirs

    def around(self, region: Region) -> tuple[Lines, Lines]:
        """The lines before and after a region in conflict, which no side changed."""
        at = self.regions.index(region)
        above = self.regions[at - 1].base if at else ()
        below = self.regions[at + 1].base if at + 1 < len(self.regions) else ()
        return above, below

    def units(self, region: Region) -> tuple[Units | None, Units | None]:
        """What a region is made of in ours and in theirs."""
        return (
            self.ours.units(region.ours, region.ours_start),
            self.theirs.units(region.theirs, region.theirs_start),
        )

    def result_of(self, region: Region) -> Lines | None:
        """What becomes of a region; None while it is open."""
        return self.answers[region].lines if region in self.answers else region.settled

    def elsewhere(self, region: Region) -> Iterator[str]:
        """All lines of the result but those of one region; of a region that is still open, those of both sides."""
        for other in self.regions:
            if other is not region:
                lines = self.result_of(other)
                yield from (*other.ours, *other.theirs) if lines is None else lines
