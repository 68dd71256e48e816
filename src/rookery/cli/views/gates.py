"""How gates look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Paragraph, Table, line, text
from rookery.merge.gates.ops import GateReport, GateSummary
from rookery.merge.model import GateRun

_SHORT = 12
_STYLES = {"passed": "good", "flaky": "note", "failed": "bad", "timeout": "bad", "overran": "bad"}
_SHOWN_LINES = 20


def report(found: GateReport, _values: dict[str, Any]) -> list[Block]:
    """What the gates say of a commit."""
    if not found.runs:
        return [text("No gate is configured for what has changed; see `gates` in the configuration.", "dim")]
    blocks: list[Block] = [runs(found.runs), *last_words(found.runs)]
    blocks.append(Paragraph((line("for ", (found.commit[:_SHORT], "id")),)))
    return blocks


def last_words(found: tuple[GateRun, ...]) -> list[Block]:
    """What those that did not pass said last."""
    blocks: list[Block] = []
    for each in found:
        if not each.is_ok and each.last_lines:
            last = "\n".join(each.last_lines.splitlines()[-_SHOWN_LINES:])
            blocks += [Paragraph((line((f"{each.name} said last:", "bold")),)), text(last, "dim", indent=2)]
    return blocks


def runs(found: tuple[GateRun, ...]) -> Table:
    """Runs of gates."""
    rows = tuple(
        (
            line((each.name, "bold")),
            line((each.verdict, _STYLES[each.verdict]), (" (known)" if each.is_cached else "", "dim")),
            line("" if each.status is None else str(each.status)),
            line(f"{each.seconds:.1f} s"),
            line((each.log, "dim")),
        )
        for each in found
    )
    return Table(("gate", "verdict", "status", "time", "output"), rows, stretch=4)


def listing(found: list[GateSummary], _values: dict[str, Any]) -> list[Block]:
    """Every gate."""
    if not found:
        return [text("No gates. Name commands under `gates:` in .rookery/config.yaml.", "dim")]
    rows = tuple(
        (
            line((each.name, "bold")),
            line(str(each.runs)),
            line((str(each.failed), "bad" if each.failed else "dim")),
            line((str(each.flaky), "note" if each.flaky else "dim")),
            line(("never" if each.last is None else each.last.verdict, "" if each.last is None else _style(each))),
            line(one_line(each.run)),
        )
        for each in found
    )
    return [Table(("gate", "runs", "failed", "flaky", "last", "command"), rows, stretch=5)]


def _style(found: GateSummary) -> str:
    return "" if found.last is None else _STYLES[found.last.verdict]
