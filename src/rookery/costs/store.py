"""What turns used, summed up; and what single prompts used that belong to no agent's life."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import marks

GROUPINGS = {
    "agent": "s.agent",
    "role": "s.role",
    "task": "coalesce(s.task_id, 'none')",
    "epic": "coalesce(g.id, p.id, t.id, 'none')",
    "run": "coalesce(s.run_id, 'none')",
    "model": "s.model",
    "turn": "s.turn",
}


@dataclass(frozen=True, slots=True)
class Cost(Record):
    """What one agent, task, run … used."""

    name: str
    turns: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    dollars: float


@dataclass(frozen=True, slots=True)
class Costs(Record):
    """What everything used, by something, the dearest first."""

    by: str
    rows: tuple[Cost, ...]
    total: Cost


@dataclass(frozen=True, slots=True)
class OneShot(Record):
    """One prompt to an agent program: who is said to have asked, why, and on whose behalf."""

    id: str
    agent: str
    role: str
    cause: str
    task_id: str | None
    run_id: str | None
    started_at: str


TURN_NAME = "s.agent || ' turn ' || n.number AS turn"
TASKS = (
    "LEFT JOIN tasks t ON t.id = s.task_id "
    "LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
)
"""From whatever used something to the tasks above it."""
_COUNTS = ("input", "output", "cache_read", "cache_write", "cost_micros")
_SPENT = (
    f"SELECT u.turn_id AS id, s.agent, s.role, s.task_id, s.run_id, n.started_at, {TURN_NAME}, u.model, "
    f"{', '.join('u.' + count for count in _COUNTS)} "
    "FROM turn_usage u JOIN turns n ON n.id = u.turn_id JOIN sessions s ON s.id = n.session_id "
    "UNION ALL SELECT id, agent, role, task_id, run_id, started_at, agent || ' ' || cause, model, "
    f"{', '.join(_COUNTS)} FROM one_shots"
)


def add_one_shot(db: Database, shot: OneShot, usage: Iterable[dict[str, Any]]) -> None:
    """Keep what a single prompt used, priced, by model; nothing if that is kept already."""
    sums: dict[str, list[int]] = {}
    for each in usage:
        known = sums.setdefault(each["model"], [0] * len(_COUNTS))
        sums[each["model"]] = [so_far + each[count] for so_far, count in zip(known, _COUNTS, strict=True)]
    columns = ", ".join((*OneShot.field_names(), "model", *_COUNTS))
    db.execute_many(
        f"INSERT INTO one_shots ({columns}) VALUES ({marks(13)}) ON CONFLICT (id, model) DO NOTHING",
        [(*shot.as_tuple(), model, *counts) for model, counts in sums.items()],
    )


def sum_up(db: Database, by: str, *, agent: str | None, run: str | None, since: str | None) -> Costs:
    """Add up the usage of turns and single prompts."""
    if by not in GROUPINGS:
        raise InvalidInput(f"costs cannot be grouped by {by}", hint="one of " + ", ".join(GROUPINGS))
    where, values = ["1 = 1"], []  # type: tuple[list[str], list[object]]
    for condition, value in (("s.agent = ?", agent), ("s.run_id = ?", run), ("s.started_at >= ?", since)):
        if value is not None:
            where.append(condition)
            values.append(value)
    rows = db.all(
        f"SELECT {GROUPINGS[by]}, count(DISTINCT s.id), sum(s.input), sum(s.output), sum(s.cache_read), "
        f"sum(s.cache_write), sum(s.cost_micros) FROM ({_SPENT}) s {TASKS} "
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
    sums = [sum(getattr(cost, name) for cost in costs) for name in Cost.field_names()[1:]]
    return Costs(by, costs, Cost("total", *sums))
