"""Both sides raised the same version of something that they use: the higher one.

Proof: the lines differ in nothing but version numbers, and each number that both sides changed was raised by both. The
higher is what raising it twice would have given. The version of the project itself is none of these: a release and
the work after it count each by itself, and which of both a branch is at is for people to say.
"""

from __future__ import annotations

import re

from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.regions import Region

NAME = "version"

_VERSION = re.compile(r"(?<![\w.])v?\d+(?:\.\d+)+(?:[-.+]?[a-z]+[-.]?\d*)*(?![\w.]*\d)", re.IGNORECASE)
_PART = re.compile(r"\d+|[a-z]+", re.IGNORECASE)
_OWN = re.compile(r"version|release", re.IGNORECASE)
_SIGNS = ("=", "~", "^", "<", ">", "@")
_BEFORE = ("dev", "a", "alpha", "b", "beta", "c", "rc", "pre", "preview", "next", "canary")


def apply(region: Region, file: ConflictedFile) -> RuleAnswer | None:
    """Every line with the higher of its versions."""
    if not len(region.base) == len(region.ours) == len(region.theirs) or _OWN.search(file.path):
        return None
    lines = []
    raised = False
    for base, ours, theirs in zip(region.base, region.ours, region.theirs, strict=True):
        if base in (ours, theirs) or ours == theirs:
            lines.append(theirs if ours == base else ours)
            continue
        names_own = _OWN.search(_VERSION.split(base)[0])  # the project's own version, not that of something it uses
        line = None if names_own else highest(base, ours, theirs)
        if line not in (ours, theirs):
            # Two versions in one line, each raised by one side: that may be a range that no side has tried.
            return None
        lines.append(line)
        raised = True
    if not raised:
        return None
    why = "both raised the same version, and nothing else; the higher one holds"
    return RuleAnswer(NAME, tuple(lines), why, drops=True, replaces=True)


def highest(base: str, ours: str, theirs: str) -> str | None:
    """A line with the highest of three versions in each place; None if it is not that both raised one."""
    texts = [_VERSION.split(line) for line in (base, ours, theirs)]
    if not texts[0] == texts[1] == texts[2] or len(texts[0]) == 1:
        return None
    parts = [texts[0][0]]
    for was, left, right, after in zip(*map(_VERSION.findall, (base, ours, theirs)), texts[0][1:], strict=True):
        if _is_number(was, parts[-1]):
            return None
        chosen = left if left == right else _raised(was, left, right)
        if chosen is None:
            return None
        parts += [chosen, after]
    return "".join(parts)


def _is_number(version: str, before: str) -> bool:
    """True if it may be a decimal number: one dot, and no sign before it that only versions have."""
    return version.count(".") == 1 and version[0] not in "vV" and before[-1:] not in _SIGNS


def _raised(was: str, left: str, right: str) -> str | None:
    if was in (left, right):
        return left if was == right else right
    if not _order(was) < min(_order(left), _order(right)):
        return None
    return max(left, right, key=_order)


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """1.0rc1 comes before 1.0, and 1.0 before 1.0.1."""
    parts = []
    for part in _PART.findall(version.removeprefix("v").partition("+")[0]):
        if part.isdigit():
            parts.append((2, int(part), ""))
        else:
            name = part.lower()
            parts.append((0, _BEFORE.index(name), "") if name in _BEFORE else (3, 0, name))
    return (*parts, (1, 0, ""))
