"""How costs look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Table, line, text
from rookery.costs.store import Cost, Costs


def table(costs: Costs, _values: dict[str, Any]) -> list[Block]:
    """What everything used, the dearest first."""
    if not costs.rows:
        return [text("Nothing was used yet.", "dim")]
    headings = (costs.by, "turns", "input", "output", "cache read", "cache write", "cost")
    return [Table(headings, tuple(_row(each) for each in (*costs.rows, costs.total)))]


def _row(cost: Cost) -> tuple[Any, ...]:
    counts = (cost.turns, cost.input, cost.output, cost.cache_read, cost.cache_write)
    return (line((cost.name, "bold")), *(line(f"{count:,}") for count in counts), line(f"${cost.dollars:.4f}"))
