"""One side once was just what the other is now, and went on from there.

Proof: an earlier version of the winning side, made since the base, equals the other side line by line. So the other
side is an older state of the winning one. It is a fast-forward that git cannot see, because the commits are not the
same: a cherry-pick, a squash, a rebase.

`superseded` lets the winning side stand where it still has every line of the other. Where it changed some of them
again, `lineage` may follow it, if the settings ask for that: people now and then go back to the older line. A whole
branch that was taken over shows in several files at once; one file alone may be a coincidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.regions import Region
from rookery.merge.resolve.text import has_text

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


def winner(file: ConflictedFile) -> str | None:
    """The side that went on, if just one did."""
    if not has_text(file.ours.lines) or not has_text(file.theirs.lines):
        return None
    by_ours, by_theirs = file.theirs.text in file.ours.versions, file.ours.text in file.theirs.versions
    if by_ours == by_theirs:
        return None
    side = OURS if by_ours else THEIRS
    # Where it undid a change of the other and did nothing else, people seldom agree with it.
    has_undone = any(region.settled not in (None, region.lines_of(side)) for region in file.regions)
    return None if has_undone else side


def lineage(winners: Iterable[str | None]) -> Lineage | None:
    """The side that went on in several files of a merge, while the other did so in none."""
    files = Counter(winners)
    for side in (OURS, THEIRS):
        if files[side] >= _SOME and not files[_other(side)]:
            return Lineage(side, files[side])
    return None


def answer(file: ConflictedFile, lineage: Lineage | None, rules: Collection[str]) -> dict[Region, RuleAnswer]:
    """Every region in conflict as the side has it that went on; nothing if none did, or if no rule lets it stand."""
    newer = winner(file)
    rule = None if newer is None else _rule_for(file, newer, lineage)
    if newer is None or rule is None or rule not in rules:
        return {}
    why = f"{newer} once was just what {_other(newer)} is now, and went on from there"
    open_regions = (region for region in file.regions if region.settled is None)
    return {region: RuleAnswer(rule, region.lines_of(newer), why, drops=True) for region in open_regions}


def _rule_for(file: ConflictedFile, side: str, lineage: Lineage | None) -> str | None:
    """The rule by which the side that went on may stand."""
    newer, older = file.side(side).lines, file.side(_other(side)).lines
    gone = (Counter(filter(str.strip, older)) - Counter(newer)).total()
    if not gone:
        return NAME
    if lineage is None or side != lineage.side or gone * _KEPT > len(older):
        return None
    return LINEAGE if len(newer) >= len(older) or lineage.files >= _MANY else None


def _other(side: str) -> str:
    return THEIRS if side == OURS else OURS
