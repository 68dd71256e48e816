"""A resolver of a few lines in place of the real one: the tiers are tested for what they do with its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rookery.base import lockfiles
from rookery.base.lockfiles import Lockfile
from rookery.merge.resolve import loss
from rookery.merge.resolve.files import Settings
from rookery.merge.resolve.model import ADDED_MISSING, OURS, Declined, Hunk, Loss, Resolved, Sides
from rookery.merge.tiers import case, mechanical

seen: list[Sides] = []


def lineage_of(_files: Sequence[Sides], *, settings: Settings) -> None:
    """Neither side went on from the other."""


def resolve(sides: Sides, *, lineage: None, settings: Settings) -> Resolved | Declined:
    """Files that end in .list are joined, those that end in .bad lose a line; nothing else is resolved."""
    seen.append(sides)
    if sides.path.endswith(".list"):
        lines = dict.fromkeys([*(sides.ours or b"").splitlines(), *(sides.theirs or b"").splitlines()])
        content = b"".join(line + b"\n" for line in lines)
        hunk = Hunk("union", "a list keeps the lines of both", 1, 2, "o", "b", "t", content.decode())
        return Resolved(content, None, (hunk,))
    if sides.path.endswith(".bad"):
        return Resolved(sides.ours or b"", None, ())
    return Declined("no rule fits", "content")


def check(sides: Sides, result: bytes, _covered: Any = ()) -> list[Loss]:
    """Lines that a side added and the result lacks."""
    base, after = Counter((sides.base or b"").splitlines()), Counter(result.splitlines())
    added = [Counter((side or b"").splitlines()) - base for side in (sides.ours, sides.theirs)]
    return [
        Loss(OURS, ADDED_MISSING, line.decode(), 1) for line in dict.fromkeys((*added[0], *added[1])) if not after[line]
    ]


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put it where the tiers find the real one."""
    seen.clear()
    monkeypatch.setattr(mechanical, "resolve", resolve)
    monkeypatch.setattr(mechanical, "lineage_of", lineage_of)
    monkeypatch.setattr(case, "has_markers", lambda content: b"<<<<<<<" in content)
    monkeypatch.setattr(case, "parses", _parses)
    monkeypatch.setattr(loss, "check", check)
    own = Lockfile("x.lock", ("x.toml",), ("sh", "-c", "sort x.toml > x.lock"))
    monkeypatch.setattr(lockfiles, "_BY_NAME", {own.name: own})


def _parses(path: str, content: bytes) -> bool | None:
    return b"syntax error" not in content if path.endswith(".py") else None
