"""One side once held all that the other has, and went on from it.

Proof: an earlier version of the winning side, made since the base, has every change that the other side made to the
file. So the other side is an older state of the winning one, and what is left out of it was changed again on purpose.
Its own history says so; this is a fast-forward that git cannot see, because the commits are not the same.
"""

from __future__ import annotations

from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.novelty import says
from rookery.merge.resolve.regions import regions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.merge.resolve.case import Case
    from rookery.merge.resolve.regions import Lines

NAME = "superseded"


def winner(case: Case) -> str | None:
    """The side that went on, if just one did."""
    if not says(case.ours) or not says(case.theirs):
        return None
    by_ours, by_theirs = _held(case, OURS, case.theirs), _held(case, THEIRS, case.ours)
    if by_ours == by_theirs:
        return None
    return OURS if by_ours else THEIRS


def _held(case: Case, side: str, other: Lines) -> bool:
    """True if an earlier version of a side had every change of the other."""
    open_regions = [region for region in case.regions if region.settled is None]
    texts = ["\n".join(region.theirs if side == OURS else region.ours) for region in open_regions]
    for version in case.versions(side):
        if version.lines == other:
            return True
        # Most versions lack the very lines in question, and then need not be compared as a whole.
        if all(text in version.text for text in texts) and _has_all(case.base, version.lines, other):
            return True
    return False


def _has_all(base: Lines, version: Lines, other: Lines) -> bool:
    """True if merging the other side into the version would change nothing."""
    return all(region.settled == region.ours for region in regions(base, version, other))
