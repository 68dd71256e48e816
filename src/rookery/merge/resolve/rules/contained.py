"""Both sides did the same, and one side did more before or after it.

Proof: the longer side begins or ends with all lines of the shorter one, and what it has beyond them is nothing that
the shorter one took out. So the longer side shows all that both did.
"""

from __future__ import annotations

from collections import Counter

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.regions import Region
from rookery.merge.resolve.text import readable

NAME = "contained"


def apply(region: Region, _file: ConflictedFile) -> RuleAnswer | None:
    """The longer side."""
    base, ours, theirs = map(readable, (region.base, region.ours, region.theirs))
    longer, shorter, name, other = ours, theirs, OURS, THEIRS
    if len(ours) <= len(theirs):
        longer, shorter, name, other = theirs, ours, THEIRS, OURS
    if not shorter or shorter not in (longer[: len(shorter)], longer[-len(shorter) :]):
        return None
    taken_out = Counter(base) - Counter(shorter)
    if taken_out & Counter(longer):
        return None
    return RuleAnswer(NAME, region.lines_of(name), f"{name} contains everything that {other} did here, and more")
