"""How the doctor's report looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rookery.base.check import Finding
from rookery.base.ids import with_handles
from rookery.cli.document import Block, Cell, Paragraph, line, text
from rookery.doctor.bug_report import BugReport
from rookery.doctor.service import Report

_MARKS = {"ok": ("✓", "good"), "warning": ("!", "busy"), "error": ("✕", "bad")}
_SUMMARY = {
    "ok": ("Everything is in order.", "good"),
    "warning": ("It works; see the warnings.", "busy"),
    "error": ("Something is wrong; see the hints.", "bad"),
}


def report(result: Report, _values: dict[str, Any]) -> Iterator[Block]:
    """Findings by category, and the verdict."""
    for category in dict.fromkeys(check.category for check in result.checks):
        yield findings(category, [check for check in result.checks if check.category == category])
    yield text(*_SUMMARY[result.status])


def findings(title: str, checks: Sequence[Finding]) -> Block:
    """Findings under a title, with what to do about them."""
    lines: list[Cell] = [(title, "bold")]
    for check in checks:
        lines.append(line("  ", _MARKS[check.status], f" {check.name}: {with_handles(check.message)}"))
        lines += [(f"      | {row}", "dim") for row in check.output.splitlines()]
        if check.fixed:
            lines.append((f"      repaired: {with_handles(check.fixed)}", "good"))
        if check.hint and check.status != "ok":
            lines.append((f"      {with_handles(check.hint)}", "dim"))
    return Paragraph(lines)


def bug_report(result: BugReport, _values: dict[str, Any]) -> list[Block]:
    """Where the report is, and what it has."""
    return [
        Paragraph([line("wrote ", (result.path, "bold"), f", {result.size / 1000:.0f} kB")]),
        Paragraph(["it has:", *(f"  {title}" for title in result.sections)]),
        text("Nothing was sent. Secrets, titles, mail and code are left out, but read it before you send it.", "note"),
    ]
