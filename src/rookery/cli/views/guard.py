"""How verdicts of the guard look, and what it says of a role."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from rookery.base.ids import with_handles
from rookery.cli.document import Block, Cell, Fields, Paragraph, text
from rookery.guard.explanation import Explanation
from rookery.guard.model import Verdict

_STYLES = {"allow": "good", "ask": "busy", "deny": "bad"}
_WIDTH = 100


def verdict(answer: Verdict, _values: dict[str, Any]) -> list[Block]:
    """One answer."""
    fields: dict[str, Cell] = {
        "verdict": (answer.verdict, _STYLES[answer.verdict]),
        "reason": with_handles(answer.reason),
        "rule": (answer.rule, "dim"),
        "instead": with_handles(answer.hint),
    }
    return [Fields(fields)]


def explanation(role: Explanation, _values: dict[str, Any]) -> Iterator[Block]:
    """A role, and what it may do."""
    yield text(f"A {role.role}, {role.profile}", "title")
    for heading, style, points in (
        ("allowed", "good", role.allowed),
        ("asked: denied where no person can answer", "busy", role.asked),
        ("denied", "bad", role.denied),
    ):
        if points:
            yield Paragraph(["", (heading, style)])
        for point in points:
            yield text(f"- {point.what}", indent=2)
            if point.names:
                names = textwrap.fill(", ".join(point.names), _WIDTH, break_on_hyphens=False)
                yield text(names, "dim", indent=4)
