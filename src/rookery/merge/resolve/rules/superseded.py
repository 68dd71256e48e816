"""One side once was just what the other is now, and went on from there.

Proof: an earlier version of the winning side, made since the base, equals the other side line by line. So the other
side is an older state of the winning one, and what is left out of it was changed again on purpose. It is a
fast-forward that git cannot see, because the commits are not the same: a cherry-pick, a squash, a rebase.
"""

from __future__ import annotations

from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.novelty import says

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.merge.resolve.case import Case
    from rookery.merge.resolve.regions import Lines, Region

NAME = "superseded"


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


def text_of(region: Region, side: str) -> Lines:
    """What one side has in a region."""
    return region.ours if side == OURS else region.theirs


def _was(case: Case, side: str, other: Lines) -> bool:
    return any(version.lines == other for version in case.versions(side))
