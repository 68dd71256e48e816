"""The tables of what turns used, and of what single prompts used that belong to no session; and their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import equals, in_chunks, marks

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
    """What agents used, added up by agent, task, model or the like, the most expensive first."""

    by: str
    rows: tuple[Cost, ...]
    total: Cost


@dataclass(frozen=True, slots=True)
class Spent(Record):
    """What the turns of one session used."""

    turns: int = 0
    tokens: int = 0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True)
class RunningTurn(Record):
    """A running turn, and the name under which its costs are shown."""

    name: str
    id: str
    session_id: str
    runtime: str
    model: str
    started_at: str


@dataclass(frozen=True, slots=True)
class OneShot(Record):
    """One prompt to an agent program outside of any session: under whose name, why, and for which task and run."""

    id: str
    agent: str
    role: str
    cause: str
    task_id: str | None
    run_id: str | None
    started_at: str


_TURN_NAME = "s.agent || ' turn ' || n.number AS turn"
_TASKS = (
    "LEFT JOIN tasks t ON t.id = s.task_id "
    "LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
)
"""From a task that used something to the tasks above it."""
_COUNTS = ("input", "output", "cache_read", "cache_write", "cost_micros")
_SPENT = (
    f"SELECT u.turn_id AS id, s.agent, s.role, s.task_id, s.run_id, n.started_at, {_TURN_NAME}, u.model, "
    f"{', '.join('u.' + count for count in _COUNTS)} "
    "FROM turn_usage u JOIN turns n ON n.id = u.turn_id JOIN sessions s ON s.id = n.session_id "
    "UNION ALL SELECT id, agent, role, task_id, run_id, started_at, agent || ' ' || cause, model, "
    f"{', '.join(_COUNTS)} FROM one_shots"
)


def add_usage(db: Database, turn_id: str, usage: Iterable[dict[str, Any]]) -> None:
    """Add what a turn used, priced, by model."""
    sums = ", ".join(f"{count} = {count} + excluded.{count}" for count in _COUNTS)
    db.execute_many(
        f"INSERT INTO turn_usage (turn_id, model, {', '.join(_COUNTS)}) VALUES ({marks(7)}) "
        f"ON CONFLICT (turn_id, model) DO UPDATE SET {sums}",
        [(turn_id, used["model"], *(used[count] for count in _COUNTS)) for used in usage],
    )


def delete_usage(db: Database, turn_ids: Iterable[str]) -> None:
    """Forget what turns used, because they are deleted."""
    db.execute_many("DELETE FROM turn_usage WHERE turn_id = ?", [(turn_id,) for turn_id in turn_ids])


def add_one_shot(db: Database, shot: OneShot, usage: Iterable[dict[str, Any]]) -> None:
    """Record what a single prompt used, priced, by model; nothing if that is recorded already."""
    sums: dict[str, Counter[str]] = {}
    for used in usage:
        sums.setdefault(used["model"], Counter()).update({count: used[count] for count in _COUNTS})
    columns = ", ".join((*OneShot.field_names(), "model", *_COUNTS))
    db.execute_many(
        f"INSERT INTO one_shots ({columns}) VALUES ({marks(13)}) ON CONFLICT (id, model) DO NOTHING",
        [(*shot.as_tuple(), model, *(counts[count] for count in _COUNTS)) for model, counts in sums.items()],
    )


def sum_up(db: Database, by: str, *, agent: str | None, run: str | None, since: str | None) -> Costs:
    """Add up the usage of turns and single prompts by one of GROUPINGS."""
    where, values = equals({"s.agent": agent, "s.run_id": run})
    rows = db.all(
        f"SELECT {GROUPINGS[by]}, count(DISTINCT s.id), sum(s.input), sum(s.output), sum(s.cache_read), "
        f"sum(s.cache_write), sum(s.cost_micros) / 1000000.0 FROM ({_SPENT}) s {_TASKS} "
        f"WHERE {' AND '.join((*where, 's.started_at >= ?'))} GROUP BY 1",
        [*values, since or ""],
    )
    return add_up(by, (Cost(*row) for row in rows))


def spent(db: Database, session_ids: Iterable[str]) -> dict[str, Spent]:
    """What the turns of each session used; a session without turns is left out."""
    rows = in_chunks(
        db,
        "SELECT n.session_id, count(DISTINCT n.id), "
        "coalesce(sum(u.input + u.output + u.cache_read + u.cache_write), 0), "
        "coalesce(sum(u.cost_micros), 0) / 1000000.0 FROM turns n LEFT JOIN turn_usage u ON u.turn_id = n.id "
        "WHERE n.session_id IN (%s) GROUP BY 1",
        session_ids,
    )
    return {session_id: Spent(*values) for session_id, *values in rows}


def running(db: Database, by: str, *, agent: str | None, run: str | None) -> list[RunningTurn]:
    """The running turns, named by what costs are grouped by; by model the name is empty, since each use has its own."""
    where, values = equals({"s.agent": agent, "s.run_id": run})
    name = GROUPINGS[by] if by != "model" else "''"
    rows = db.all(
        f"SELECT {name}, s.turn_id, s.id, s.runtime, s.model, s.started_at FROM ("
        "SELECT s.id, s.agent, s.role, s.task_id, s.run_id, s.runtime, s.model, "
        f"n.id AS turn_id, n.started_at, {_TURN_NAME} "
        f"FROM turns n JOIN sessions s ON s.id = n.session_id WHERE n.state = 'running') s {_TASKS} "
        f"WHERE {' AND '.join((*where, '1 = 1'))}",
        values,
    )
    return [RunningTurn(*row) for row in rows]


def add_up(by: str, rows: Iterable[Cost]) -> Costs:
    """Rows and their sum, the most expensive first."""
    costs = tuple(sorted(rows, key=lambda cost: (-cost.dollars, cost.name)))
    sums = [sum(getattr(cost, name) for cost in costs) for name in Cost.field_names()[1:]]
    return Costs(by, costs, Cost("total", *sums))
