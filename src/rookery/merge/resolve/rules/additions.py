"""Both sides added whole things at the same place, and different ones: ours, then theirs.

Proof: each side's lines are whole nodes of its syntax tree, or whole entries of a list in prose, with names of their
own, and neither side knows what the other added. All lines of both are kept, each thing in one piece.
"""

from __future__ import annotations

import re

from rookery.merge.resolve.case import Answer
from rookery.merge.resolve.model import OURS, THEIRS
from rookery.merge.resolve.novelty import both_new, only_added
from rookery.merge.resolve.syntax import DEFINITIONS, ITEMS, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.merge.resolve.case import Case
    from rookery.merge.resolve.regions import Region

ENTRIES = "entries"

# Where replayed histories show that people keep both. In Go they kept one side more often than not.
_DEFINED_IN = frozenset(("python",))
_LISTED_IN = frozenset(("python", "toml", "rust"))
_PROSE = frozenset(("md", "rst", "txt", "adoc"))
_LISTS = frozenset(("authors", "contributors", "credits", "thanks", "changes", "changelog", "history", "news"))
"""Files of prose that have no ending."""
_HEADING = re.compile(r"^\s*(#{1,6}\s|([=\-~^*+\"'`#])\2{2,}\s*$|\*\*.+\*\*\s*$)")


def definitions(region: Region, case: Case) -> Answer | None:
    """Functions and classes."""
    return _parsed(region, case, DEFINITIONS) if case.language in _DEFINED_IN else None


def items(region: Region, case: Case) -> Answer | None:
    """Elements of a list, pairs of a mapping, members."""
    return _parsed(region, case, ITEMS) if case.language in _LISTED_IN else None


def _parsed(region: Region, case: Case, kind: str) -> Answer | None:
    if not only_added(region) or not any(case.around(region)) or not both_new(region, case):
        return None
    ours, theirs = case.tree(OURS), case.tree(THEIRS)
    if ours is None or theirs is None:
        return None
    left = units(ours, region.ours, region.ours_start)
    right = units(theirs, region.theirs, region.theirs_start)
    if left is None or right is None or not left.kind == right.kind == kind or left.parent != right.parent:
        return None
    if set(left.names) & set(right.names):
        return None
    return Answer(kind, (*region.ours, *region.theirs), f"both sides added whole {kind} here, of different names")


def entries(region: Region, case: Case) -> Answer | None:
    """Points of a list in prose, and lines of a plain list. A heading may belong to what follows, so it is no entry."""
    name = case.path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    both = (*region.ours, *region.theirs)
    if (ending not in _PROSE and name.lower() not in _LISTS) or any(_HEADING.match(line) for line in both):
        return None
    if not only_added(region) or not any(case.around(region)) or not both_new(region, case):
        return None
    return Answer(ENTRIES, both, "both sides added entries of their own to a list")
