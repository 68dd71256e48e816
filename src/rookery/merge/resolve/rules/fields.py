"""Both sides added keys of their own to one mapping in JSON, YAML or TOML.

Proof: on both sides the region is whole pairs of one mapping, a line each, and no key twice. So it is a table; what was
in it is as it was on both sides, and no key was added by both.
"""

from __future__ import annotations

import re

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.regions import Lines, Region
from rookery.merge.resolve.text import has_text

Table = dict[str, str]
"""Each key with its line, without the comma at its end."""

NAME = "fields"

_PAIR = {
    "json": re.compile(r'^\s*("(?:[^"\\]|\\.)*")\s*:\s*\S'),
    "yaml": re.compile(r"^\s*([\w.$/\"'-]+)\s*:(?:\s|$)"),
    "toml": re.compile(r"^\s*([\w.\"'-]+)\s*=\s*\S"),
}
_MAPPINGS = frozenset(("object", "block_mapping", "table", "document"))


def apply(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """The merged table, in the order of ours."""
    pair = _PAIR.get(file.language or "")
    if pair is None or not has_text(region.ours) or not has_text(region.theirs):
        return None
    if not has_text(region.base) and not any(file.around(region)):
        return None
    base, ours, theirs = (_table(pair, lines) for lines in (region.base, region.ours, region.theirs))
    if base is None or ours is None or theirs is None:
        return None
    if not all(units is not None and units.parent in _MAPPINGS for units in file.units(region)):
        return None
    merged = _merged(base, ours, theirs)
    lines = None if merged is None else _written(merged, region, commas=file.language == "json")
    if not lines:
        return None
    return RuleAnswer(NAME, lines, "the sides added different keys to one table", drops=True)


def _table(pair: re.Pattern[str], lines: Lines) -> Table | None:
    """The lines by their keys; None if there is anything else, or a key twice."""
    table: Table = {}
    for line in lines:
        match = pair.match(line)
        if match is None or match[1] in table:
            return None
        table[match[1]] = line.rstrip().removesuffix(",")
    indents = {line[: len(line) - len(line.lstrip())] for line in lines}
    return table if len(indents) <= 1 else None


def _merged(base: Table, ours: Table, theirs: Table) -> list[str] | None:
    """All keys; None if a side took one out, or if it has two values."""
    if not base.keys() <= ours.keys() & theirs.keys():
        return None
    if any(ours[key] != theirs[key] for key in ours.keys() & theirs.keys()):
        return None
    both = theirs | ours
    return [both[key] for key in _order(base, ours, theirs)]


def _order(base: Table, ours: Table, theirs: Table) -> list[str]:
    """The keys as ours has them; what theirs added stands where it did, after what ours added at the same place."""
    order = list(ours)
    at = 0
    for key in theirs:
        if key in ours:
            at = order.index(key) + 1
            continue
        while at < len(order) and order[at] not in base and order[at] not in theirs:
            at += 1
        order.insert(at, key)
        at += 1
    return order


def _written(merged: list[str], region: Region, *, commas: bool) -> Lines | None:
    """The lines with commas where JSON wants them: after the last one too, if the table goes on."""
    if not commas:
        return tuple(merged)
    goes_on = region.ours[-1].rstrip().endswith(",")
    if goes_on != region.theirs[-1].rstrip().endswith(","):
        return None
    return tuple(f"{line}," if goes_on or at < len(merged) - 1 else line for at, line in enumerate(merged))
