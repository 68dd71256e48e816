"""What turns used, summed up."""

from __future__ import annotations

from rookery.base.errors import InvalidInput
from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rookery.db.database import Database

GROUPINGS = {
    "agent": "s.agent",
    "role": "s.role",
    "task": "coalesce(s.task_id, 'none')",
    "epic": "coalesce(g.id, p.id, t.id, 'none')",
    "run": "s.run_id",
    "model": "u.model",
    "turn": "s.agent || ' turn ' || n.number",
}


class Cost(Record):
    """What one agent, task, run … used."""

    name: str
    turns: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    dollars: float


class Costs(Record):
    """What everything used, by something, the dearest first."""

    by: str
    rows: tuple[Cost, ...]
    total: Cost


JOINS = (
    "JOIN sessions s ON s.id = n.session_id LEFT JOIN tasks t ON t.id = s.task_id "
    "LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
)
"""From a turn to what its costs can be added up by."""


def sum_up(db: Database, by: str, *, agent: str | None, run: str | None, since: str | None) -> Costs:
    """Add up the usage of turns."""
    if by not in GROUPINGS:
        raise InvalidInput(f"costs cannot be grouped by {by}", hint="one of " + ", ".join(GROUPINGS))
    where, values = ["1 = 1"], []  # type: tuple[list[str], list[object]]
    for condition, value in (("s.agent = ?", agent), ("s.run_id = ?", run), ("n.started_at >= ?", since)):
        if value is not None:
            where.append(condition)
            values.append(value)
    rows = db.all(
        f"SELECT {GROUPINGS[by]}, count(DISTINCT u.turn_id), sum(u.input), sum(u.output), sum(u.cache_read), "
        f"sum(u.cache_write), sum(u.cost_micros) FROM turn_usage u JOIN turns n ON n.id = u.turn_id {JOINS} "
        f"WHERE {' AND '.join(where)} GROUP BY 1 ORDER BY 7 DESC, 1",
        values,
    )
    return add_up(
        by,
        (
            Cost(name, turns, taken, given, read, written, micros / 1_000_000)
            for name, turns, taken, given, read, written, micros in rows
        ),
    )


def add_up(by: str, rows: Iterable[Cost]) -> Costs:
    """Rows and their sum, the dearest first."""
    costs = tuple(sorted(rows, key=lambda cost: (-cost.dollars, cost.name)))
    sums = [sum(getattr(cost, name) for cost in costs) for name in Cost.__fields__[1:]]
    return Costs(by, costs, Cost("total", *sums))
