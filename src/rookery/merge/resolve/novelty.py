"""Whether two sides that added text at the same place added different things.

Two people who solve the same problem write similar lines, and then one of both is wanted, not both. So what each side
added must be unlike the other's, and must be nowhere else in the other side, neither now nor earlier.
"""

from __future__ import annotations

from collections import Counter

from rookery.merge.resolve.model import OURS, THEIRS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from rookery.merge.resolve.case import Case, Version
    from rookery.merge.resolve.regions import Lines, Region

_ALIKE = 0.35
"""The share of common words from which on two texts are alike."""
_TELLING = 7
"""A line with fewer characters says too little to be recognised."""


def both_new(region: Region, case: Case) -> bool:
    """True if each side added something here that the other does not know."""
    ours, theirs = _telling(region.ours), _telling(region.theirs)
    if ours & theirs or alike(region.ours, region.theirs) >= _ALIKE:
        return False
    by_ours, by_theirs = case.added
    if ours & by_theirs or theirs & by_ours:
        return False
    return not _known(ours - case.base_lines, case.versions(THEIRS)) and not _known(
        theirs - case.base_lines, case.versions(OURS)
    )


def only_added(region: Region) -> bool:
    """True if both sides put something where the base has nothing to read."""
    return not says(region.base) and says(region.ours) and says(region.theirs)


def says(lines: Iterable[str]) -> bool:
    """True if there is anything to read."""
    return any(line.strip() for line in lines)


def alike(left: Lines, right: Lines) -> float:
    """How much of two texts is the same words, from 0 to 1."""
    one, other = Counter(" ".join(left).split()), Counter(" ".join(right).split())
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _telling(lines: Iterable[str]) -> set[str]:
    return {text for line in lines if len(text := line.strip()) >= _TELLING}


def _known(lines: Set[str], versions: Iterable[Version]) -> bool:
    """True if an earlier version had most of these lines."""
    return any(2 * sum(line in version.text for line in lines) > len(lines) for version in versions) if lines else False
