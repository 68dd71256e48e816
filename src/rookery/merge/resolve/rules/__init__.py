"""The rules, in the order in which they are asked. Each has its proof; what it cannot prove it leaves.

`superseded` and `lineage` look at the file as a whole, and are asked before all others.
"""

from __future__ import annotations

from collections.abc import Callable

from rookery.merge.resolve import syntax
from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.regions import Region
from rookery.merge.resolve.rules import additions, contained, fields, superseded, union, version, whitespace
from rookery.merge.resolve.rules import import_lines as imports

Rule = Callable[[Region, ConflictedFile], RuleAnswer | None]

RULES: dict[str, Rule] = {
    whitespace.NAME: whitespace.apply,
    version.NAME: version.apply,
    contained.NAME: contained.apply,
    fields.NAME: fields.apply,
    union.NAME: union.apply,
    additions.ENTRIES: additions.entries,
    syntax.DEFINITIONS: additions.definitions,
    syntax.ITEMS: additions.items,
    imports.NAME: imports.apply,
}
LATE = frozenset((imports.NAME,))
"""Those that ask what became of the rest of the file."""
ON_REQUEST = (superseded.LINEAGE, version.NAME)
"""Those that put one line in the place of another."""
DEFAULT = (superseded.NAME, *(name for name in RULES if name not in ON_REQUEST))
ALL = (*DEFAULT, *ON_REQUEST)
