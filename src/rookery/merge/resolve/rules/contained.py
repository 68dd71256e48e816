"""Both sides did the same, and one side did more before or after it.

Proof: the longer side begins or ends with all lines of the shorter one, and what it has beyond them is nothing that
the shorter one took out. So the longer side shows all that both did.
"""

from __future__ import annotations

from collections import Counter

from rookery.merge.resolve.conflict import Answer, Case
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.regions import Lines, Region

NAME = "contained"


def apply(region: Region, _case: Case) -> Answer | None:
    """The longer side."""
    base, ours, theirs = _read(region.base), _read(region.ours), _read(region.theirs)
    if len(ours) > len(theirs):
        longer, lines, shorter, name, other = ours, region.ours, theirs, OURS, THEIRS
    else:
        longer, lines, shorter, name, other = theirs, region.theirs, ours, THEIRS, OURS
    if not shorter or shorter not in (longer[: len(shorter)], longer[-len(shorter) :]):
        return None
    taken_out = Counter(base) - Counter(shorter)
    if taken_out & Counter(longer):
        return None
    return Answer(NAME, lines, f"{name} shows all that {other} did here, and more")


def _read(lines: Lines) -> Lines:
    return tuple(line.rstrip() for line in lines if line.strip())
