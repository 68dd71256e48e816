"""Whether two sides that added text at the same place added different things.

Two people who solve the same problem write similar lines, and then one of both is wanted, not both. So what each side
added must be unlike the other's, and must be nowhere else in the other side, neither now nor earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from rookery.merge.resolve.conflict import Case, Version
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.regions import Lines, Region

_ALIKE = 0.35
"""The share of common words from which on two texts are alike."""
_TELLING = 7
"""A line with fewer characters says too little to be recognised."""


def are_alike(region: Region) -> bool:
    """True if both sides added much the same here."""
    return bool(_telling(region.ours) & _telling(region.theirs)) or _likeness(region.ours, region.theirs) >= _ALIKE


def is_known(region: Region, case: Case) -> bool:
    """True if one side has what the other added here: in another place, or in an earlier version."""
    ours, theirs = _telling(region.ours), _telling(region.theirs)
    by_ours, by_theirs = case.added
    if ours & (by_theirs - theirs) or theirs & (by_ours - ours):
        return True
    return _had(ours - case.base_lines, case.versions(THEIRS)) or _had(theirs - case.base_lines, case.versions(OURS))


def only_added(region: Region) -> bool:
    """True if both sides put something where the base has nothing to read."""
    return not says(region.base) and says(region.ours) and says(region.theirs)


def says(lines: Iterable[str]) -> bool:
    """True if there is anything to read."""
    return any(line.strip() for line in lines)


def _likeness(left: Lines, right: Lines) -> float:
    """How much of two texts is the same words, from 0 to 1."""
    one, other = Counter(" ".join(left).split()), Counter(" ".join(right).split())
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _telling(lines: Iterable[str]) -> set[str]:
    return {text for line in lines if len(text := line.strip()) >= _TELLING}


def _had(lines: Set[str], versions: Iterable[Version]) -> bool:
    """True if an earlier version had most of these lines."""
    return any(2 * sum(line in version.text for line in lines) > len(lines) for version in versions) if lines else False
