"""One side once was just what the other is now, and went on from there.

Proof: an earlier version of the winning side, made since the base, equals the other side line by line. So the other
side is an older state of the winning one. It is a fast-forward that git cannot see, because the commits are not the
same: a cherry-pick, a squash, a rebase.

`superseded` lets the winning side stand where it still has every line of the other. Where it changed some of them
again, `lineage` may follow it, if it was asked for: people now and then go back to the older line. A whole branch that
was taken over shows in several files at once; one file alone may be a coincidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.resolve.conflict import Case
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.novelty import says
from rookery.merge.resolve.regions import Lines, Region

NAME = "superseded"
LINEAGE = "lineage"

_SOME, _MANY = 3, 8
"""In how many files of a merge one side must have gone on before it may change lines, and before it may shrink one."""
_KEPT = 3
"""It may leave out one line of so many; a side that rewrote the file did not go on with it."""


@dataclass(frozen=True, slots=True)
class Lineage(Record):
    """Which side of a merge went on from what the other is now, and in how many files."""

    side: str
    files: int


def winner(case: Case) -> str | None:
    """The side that went on, if just one did."""
    if not says(case.ours) or not says(case.theirs):
        return None
    by_ours, by_theirs = _was(case, OURS, case.theirs), _was(case, THEIRS, case.ours)
    if by_ours == by_theirs:
        return None
    side = OURS if by_ours else THEIRS
    # Where it took a change of the other back and did nothing else, people are seldom of its opinion.
    undone = any(region.settled not in (None, text_of(region, side)) for region in case.regions)
    return None if undone else side


def lineage(winners: Iterable[str | None]) -> Lineage | None:
    """The side that went on in several files of a merge, while the other did so in none."""
    found = Counter(winners)
    for side, other in ((OURS, THEIRS), (THEIRS, OURS)):
        if found[side] >= _SOME and not found[other]:
            return Lineage(side, found[side])
    return None


def rule_for(case: Case, side: str, lineage: Lineage | None) -> str | None:
    """The rule by which the side that went on may stand."""
    newer, older = (case.ours, case.theirs) if side == OURS else (case.theirs, case.ours)
    gone = (Counter(filter(str.strip, older)) - Counter(newer)).total()
    if not gone:
        return NAME
    if lineage is None or side != lineage.side or gone * _KEPT > len(older):
        return None
    return LINEAGE if len(newer) >= len(older) or lineage.files >= _MANY else None


def text_of(region: Region, side: str) -> Lines:
    """What one side has in a region."""
    return region.ours if side == OURS else region.theirs


def _was(case: Case, side: str, other: Lines) -> bool:
    return any(version.lines == other for version in case.versions(side))
