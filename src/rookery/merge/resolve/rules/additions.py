"""Both sides added whole things at the same place, and different ones: ours, then theirs.

Proof: each side's lines are whole nodes of its syntax tree, or whole entries of a list in prose, with names of their
own, and neither side knows what the other added. All lines of both are kept, each thing in one piece.
"""

from __future__ import annotations

import re

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.novelty import are_alike, is_known, only_added
from rookery.merge.resolve.regions import Region
from rookery.merge.resolve.syntax import DEFINITIONS, ITEMS

ENTRIES = "entries"

# Where replayed histories show that people keep both. Of two functions in Go they kept one too often.
_DEFINED_IN = frozenset(("python", "rust", "typescript", "tsx"))
_LISTED_IN = frozenset(("go", "javascript", "python", "rust", "toml", "tsx", "typescript", "yaml"))
_PROSE = frozenset(("md", "rst", "txt", "adoc"))
_LISTS = frozenset(
    (
        *("authors", "contributors", "credits", "thanks", "changes", "changelog", "history", "news"),
        *(".gitignore", ".dockerignore", ".npmignore", ".prettierignore", ".eslintignore"),
    )
)
"""Files of entries that have no ending of their own."""
_HEADING = re.compile(r"^\s*(#{1,6}\s|([=\-~^*+\"'`#])\2{2,}\s*$|\*\*.+\*\*\s*$)")


def definitions(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """Functions and classes."""
    return parsed(region, file, DEFINITIONS) if file.language in _DEFINED_IN else None


def items(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """Elements of a list, pairs of a mapping, members."""
    return parsed(region, file, ITEMS) if file.language in _LISTED_IN else None


def parsed(region: Region, file: ConflictedFile, kind: str) -> RuleAnswer | None:
    """Whole nodes of one kind."""
    if not _is_new(region, file) or (kind != DEFINITIONS and are_alike(region)):  # two functions may well be alike
        return None
    left, right = file.units(region)
    if left is None or right is None or not left.kind == right.kind == kind or left.parent != right.parent:
        return None
    if set(left.names) & set(right.names):
        return None
    return RuleAnswer(kind, (*region.ours, *region.theirs), f"both sides added whole {kind} here, of different names")


def entries(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """Points of a list in prose, and lines of a plain list. A heading of Markdown may belong to what follows."""
    name = file.path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    both = (*region.ours, *region.theirs)
    if ending not in _PROSE and name.lower() not in _LISTS:
        return None
    if ending == "md" and any(_HEADING.match(line) for line in both):
        return None
    if not _is_new(region, file) or are_alike(region):
        return None
    return RuleAnswer(ENTRIES, both, "both sides added entries of their own to a list")


def _is_new(region: Region, file: ConflictedFile) -> bool:
    """True if both sides only added, within a file that was there, and neither has what the other added."""
    return only_added(region) and any(file.around(region)) and not is_known(region, file)
