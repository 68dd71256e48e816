"""Whether two sides that added text at the same place added different things.

Two people who solve the same problem write similar lines, and then one of both is wanted, not both. So what each side
added must be unlike the other's, and must be nowhere else in the other side, neither now nor earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from rookery.merge.resolve.conflict import ConflictedFile
from rookery.merge.resolve.regions import Lines, Region
from rookery.merge.resolve.text import has_text

_ALIKE = 0.35
"""Two texts with this share of common words are alike."""
_TELLING = 7
"""A line with fewer characters says too little to be recognised."""


def are_alike(region: Region) -> bool:
    """True if both sides added much the same here."""
    return bool(_telling(region.ours) & _telling(region.theirs)) or _likeness(region.ours, region.theirs) >= _ALIKE


def is_known(region: Region, file: ConflictedFile) -> bool:
    """True if one side has what the other added here: in another place, or in an earlier version."""
    base, ours, theirs = file.base.stripped, _telling(region.ours), _telling(region.theirs)
    pairs = ((ours - base, theirs, file.theirs), (theirs - base, ours, file.ours))
    return any(added & (other.stripped - here) or _had(added, other.versions) for added, here, other in pairs)


def only_added(region: Region) -> bool:
    """True if both sides added text where the base has none."""
    return not has_text(region.base) and has_text(region.ours) and has_text(region.theirs)


def _likeness(left: Lines, right: Lines) -> float:
    """How much of two texts is the same words, from 0 to 1."""
    one, other = Counter(" ".join(left).split()), Counter(" ".join(right).split())
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _telling(lines: Iterable[str]) -> set[str]:
    return {text for line in lines if len(text := line.strip()) >= _TELLING}


def _had(lines: Set[str], versions: Iterable[str]) -> bool:
    """True if an earlier version had most of these lines."""
    return any(2 * sum(line in version for line in lines) > len(lines) for version in versions)
