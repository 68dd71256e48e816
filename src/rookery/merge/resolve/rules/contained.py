"""Both sides added the same at the same place, and one side went on.

Proof: the base has nothing here, and the longer addition begins with all lines of the shorter one. So the longer side
shows all that both added.
"""

from __future__ import annotations

from rookery.merge.resolve.case import Answer
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.novelty import only_added

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.merge.resolve.case import Case
    from rookery.merge.resolve.regions import Lines, Region

NAME = "contained"


def apply(region: Region, _case: Case) -> Answer | None:
    """The longer addition."""
    if not only_added(region):
        return None
    ours, theirs = _read(region.ours), _read(region.theirs)
    if len(ours) > len(theirs):
        longer, lines, shorter, name, other = ours, region.ours, theirs, OURS, THEIRS
    else:
        longer, lines, shorter, name, other = theirs, region.theirs, ours, THEIRS, OURS
    if longer[: len(shorter)] != shorter:
        return None
    return Answer(NAME, lines, f"{name} begins with all that {other} added here")


def _read(lines: Lines) -> Lines:
    return tuple(line for line in lines if line.strip())
