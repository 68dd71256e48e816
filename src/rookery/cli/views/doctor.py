"""How the doctor's report looks."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Line, Paragraph, line, text
from rookery.doctor.service import Report

_MARKS = {"ok": ("✓", "good"), "warning": ("!", "busy"), "error": ("✕", "bad")}
_SUMMARY = {
    "ok": ("Everything is in order.", "good"),
    "warning": ("It works; see the warnings.", "busy"),
    "error": ("Something is wrong; see the hints.", "bad"),
}


def report(found: Report, _values: dict[str, Any]) -> list[Block]:
    """Findings by category, and the verdict."""
    blocks: list[Block] = []
    for category in dict.fromkeys(each.category for each in found.checks):
        lines: list[Line] = [line((category, "bold"))]
        for each in found.checks:
            if each.category != category:
                continue
            lines.append(line("  ", _MARKS[each.status], f" {each.name}: {each.message}"))
            if each.fixed:
                lines.append(line((f"      repaired: {each.fixed}", "good")))
            if each.hint and each.status != "ok":
                lines.append(line((f"      {each.hint}", "dim")))
        blocks.append(Paragraph(tuple(lines)))
    return [*blocks, text(*_SUMMARY[found.status])]
