"""One side only tidied blank lines and the ends of lines, or both sides differ in nothing else.

Proof: without blank lines and trailing blanks the tidied text is the base's, line by line, so the other side's text
holds every change that can be read. Indentation counts: it has a meaning in too many languages.
"""

from __future__ import annotations

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.regions import Region
from rookery.merge.resolve.text import readable

NAME = "whitespace"


def apply(region: Region, _file: ConflictedFile) -> RuleAnswer | None:
    """The side that changed what can be read."""
    base, ours, theirs = map(readable, (region.base, region.ours, region.theirs))
    if not ours or not theirs:
        return None
    if ours == theirs:
        return RuleAnswer(NAME, region.ours, "both sides differ in blank lines and line ends alone", drops=True)
    for unchanged, lines, side in ((ours, region.theirs, OURS), (theirs, region.ours, THEIRS)):
        if unchanged == base:
            return RuleAnswer(NAME, lines, f"{side} changed blank lines and line ends alone", drops=True)
    return None
