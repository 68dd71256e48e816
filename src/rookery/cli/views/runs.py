"""How runs, specifications and costs look."""

from __future__ import annotations

from typing import Any

from rookery.agents.run_ops import Spec
from rookery.base.clock import stamp
from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Table, moment, named, next_page, text
from rookery.cli.views.agents import alive, ended
from rookery.config.environ import now
from rookery.costs.store import Cost, Costs
from rookery.sessions.model import Run
from rookery.status.service import RunReport


def table(runs: list[Run], _values: dict[str, Any]) -> list[Block]:
    """Runs, the newest first."""
    rows = [(named(run.id), _state(run), run.agents, one_line(run.title)) for run in runs]
    return [Table(("run", "state", "agents", "goal"), rows, empty="No runs yet."), *next_page(runs)]


def _state(run: Run) -> Cell:
    if run.alive:
        return "in progress", "busy"
    return ("ended", "dim") if run.completed_at is None else ("completed", "good")


def one(run: Run, _values: dict[str, Any]) -> list[Block]:
    """One run."""
    fields: dict[str, Cell] = {
        "run": named(run.id),
        "goal": one_line(run.title),
        "state": _state(run),
        "agents": f"{run.agents}, {run.alive} alive",
        "started": moment(run.created_at),
        "ended": moment(run.ended_at),
        "completed": moment(run.completed_at),
    }
    return [Fields(fields)]


def report(result: RunReport, values: dict[str, Any]) -> list[Block]:
    """A run with its agents."""
    at = stamp(now())
    tables = [
        alive([agent for agent in result.agents if agent.outcome is None], at),
        ended([agent for agent in result.agents if agent.outcome is not None], at),
    ]
    return [
        *one(result.run, values),
        *(table for table in tables if table.rows),
        text(f"cost ${result.dollars:.4f}", "dim"),
    ]


def spec(result: Spec, _values: dict[str, Any]) -> list[Block]:
    """A specification."""
    return [text(result.path, "dim"), text(result.text.rstrip("\n"))]


def costs(spent: Costs, _values: dict[str, Any]) -> list[Block]:
    """What everything used, the most expensive first."""
    headings = (spent.by, "turns", "input", "output", "cache read", "cache write", "cost")
    rows = [_row(cost) for cost in (*spent.rows, spent.total)] if spent.rows else []
    return [Table(headings, rows, empty="Nothing was used yet.")]


def _row(cost: Cost) -> tuple[Cell, ...]:
    counts = (cost.turns, cost.input, cost.output, cost.cache_read, cost.cache_write)
    return (cost.name, "bold"), *(f"{count:,}" for count in counts), f"${cost.dollars:.4f}"
