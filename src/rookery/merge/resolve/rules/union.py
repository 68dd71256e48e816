"""Both sides added lines to a file that the settings declare to be a heap of lines: ours, then what theirs adds.

Proof: the declaration says that the order of its lines has no meaning and that none depends on another, and nothing of
the base is touched. All lines of both are kept, one that both added once.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.novelty import only_added
from rookery.merge.resolve.regions import Region

NAME = "union"


def apply(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """All lines of both."""
    if not only_added(region) or not is_declared(file.path, file.unions):
        return None
    known = set(region.ours)
    more = (line for line in region.theirs if line not in known)
    return RuleAnswer(NAME, (*region.ours, *more), "`merge.unions` names this file, and both sides added lines")


def is_declared(path: str, unions: tuple[str, ...]) -> bool:
    """True if a pattern matches the path or, without a slash in it, the file's name."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in unions)
