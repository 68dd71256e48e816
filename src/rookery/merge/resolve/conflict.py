"""One file in conflict, as the rules see it: its lines, its syntax, and the earlier versions on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Tree

from rookery.base.record import Record
from rookery.merge.resolve import text
from rookery.merge.resolve.languages import language_of, tree_of
from rookery.merge.resolve.model import OURS
from rookery.merge.resolve.regions import Lines, Region, regions


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What one rule makes of one region."""

    rule: str
    lines: Lines
    why: str
    drops: bool = False
    """True if lines are changed or left out, and the proof says why they may be."""
    replaces: bool = False
    """True if a line of a side need not be there, because another stands for it."""


class Case:
    """A file; trees and earlier versions are read only when a rule asks for them."""

    def __init__(
        self,
        path: str,
        base: Lines,
        ours: Lines,
        theirs: Lines,
        ours_history: Sequence[bytes] = (),
        theirs_history: Sequence[bytes] = (),
        unions: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.base = base
        self.ours = ours
        self.theirs = theirs
        self.unions = unions
        self.regions = tuple(regions(base, ours, theirs))
        self.answers: dict[int, Answer] = {}
        """What was said of regions so far, by their place in `regions`."""
        self._histories = {True: ours_history, False: theirs_history}
        self._versions: dict[bool, list[Version]] = {}
        self._trees: dict[bool, Tree | None] = {}

    @cached_property
    def language(self) -> str | None:
        """The language that the file is in, if it is parsed here."""
        return language_of(self.path)

    @cached_property
    def base_lines(self) -> frozenset[str]:
        """Every line of the base, stripped."""
        return frozenset(map(str.strip, self.base))

    @cached_property
    def added(self) -> tuple[frozenset[str], frozenset[str]]:
        """Every line that ours and theirs have and the base has not, stripped."""
        ours, theirs = (frozenset(map(str.strip, lines)) for lines in (self.ours, self.theirs))
        return ours - self.base_lines, theirs - self.base_lines

    def place(self, region: Region) -> int:
        """Which of all regions this one is."""
        return next(at for at, each in enumerate(self.regions) if each is region)

    def around(self, region: Region) -> tuple[Lines, Lines]:
        """The lines before and after a region in conflict that nobody changed."""
        at = self.place(region)
        above = self.regions[at - 1].base if at else ()
        below = self.regions[at + 1].base if at + 1 < len(self.regions) else ()
        return above, below

    def elsewhere(self, region: Region) -> Iterator[str]:
        """All lines of the result but those of one region; of a region that is still open, those of both sides."""
        for at, each in enumerate(self.regions):
            if each is region:
                continue
            if at in self.answers:
                yield from self.answers[at].lines
            elif each.settled is not None:
                yield from each.settled
            else:
                yield from each.ours
                yield from each.theirs

    def tree(self, side: str) -> Tree | None:
        """The syntax tree of one side; None if it is in no language that is parsed here, or has faults."""
        which = side == OURS
        if which not in self._trees:
            lines = self.ours if which else self.theirs
            tree = tree_of(self.language, "\n".join(lines).encode()) if self.language else None
            self._trees[which] = None if tree is None or tree.root_node.has_error else tree
        return self._trees[which]

    def versions(self, side: str) -> list[Version]:
        """The earlier versions of one side, newest first."""
        which = side == OURS
        if which not in self._versions:
            found = (text.read(content) for content in self._histories[which])
            self._versions[which] = [Version(each.lines) for each in found if each is not None]
        return self._versions[which]


class Version:
    """One earlier version of a side."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
