"""How runs, specifications and costs look."""

from __future__ import annotations

from typing import Any

from rookery.agents.run_ops import Spec
from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Table, line, text
from rookery.cli.views.agents import status
from rookery.costs.store import Cost, Costs
from rookery.sessions.model import Run
from rookery.status.service import RunReport


def table(runs: list[Run], _values: dict[str, Any]) -> list[Block]:
    """Runs, the newest first."""
    if not runs:
        return [text("No runs yet.", "dim")]
    rows = tuple(
        (
            line((run.id, "id")),
            line(run.created_at),
            line(run.completed_at or "under way"),
            line(one_line(run.title)),
        )
        for run in runs
    )
    return [Table(("run", "began", "ended", "title"), rows, stretch=3)]


def one(run: Run, _values: dict[str, Any]) -> list[Block]:
    """One run."""
    rows = (
        ("run", line((run.id, "id"))),
        ("title", line(one_line(run.title))),
        ("began", line(run.created_at)),
        ("ended", line(run.completed_at or "under way")),
    )
    return [Fields(rows)]


def report(result: RunReport, values: dict[str, Any]) -> list[Block]:
    """A run with its agents."""
    return [*one(result.run, values), *status(list(result.agents), values), text(f"cost ${result.dollars:.4f}", "dim")]


def spec(result: Spec, _values: dict[str, Any]) -> list[Block]:
    """A specification."""
    return [text(result.path, "dim"), text(result.text.rstrip("\n"))]


def costs(spent: Costs, _values: dict[str, Any]) -> list[Block]:
    """What everything used, the most expensive first."""
    if not spent.rows:
        return [text("Nothing was used yet.", "dim")]
    headings = (spent.by, "turns", "input", "output", "cache read", "cache write", "cost")
    return [Table(headings, tuple(_row(cost) for cost in (*spent.rows, spent.total)))]


def _row(cost: Cost) -> tuple[Any, ...]:
    counts = (cost.turns, cost.input, cost.output, cost.cache_read, cost.cache_write)
    return (line((cost.name, "bold")), *(line(f"{count:,}") for count in counts), line(f"${cost.dollars:.4f}"))
