"""What turns that are still running have used so far, added to what is settled.

The usage of a program that reports it as it runs is in the telemetry; that of Claude Code is in its transcripts, where
each message has its time.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from rookery.config import layout
from rookery.config.model import Config
from rookery.costs.prices import KINDS, price
from rookery.costs.store import Cost, Costs, RunningTurn, add_up, running
from rookery.db.database import Database
from rookery.events.telemetry import Telemetry
from rookery.runtimes.registry import open_runtime


def add_running(
    db: Database, root: str, config: Config, settled: Costs, *, agent: str | None, run: str | None
) -> Costs:
    """The costs with those of running turns, the most expensive first."""
    rows = {cost.name: cost for cost in settled.rows}
    for turn in running(db, settled.by, agent=agent, run=run):
        seen: set[str] = set()
        for used in _so_far(root, turn):
            priced = price(used, turn.model, config)
            key = priced["model"] if settled.by == "model" else turn.name
            known = rows.get(key, Cost(key, 0, 0, 0, 0, 0, 0.0))
            counts = {kind: getattr(known, kind) + priced[kind] for kind in KINDS}
            dollars = known.dollars + priced["cost_micros"] / 1_000_000
            rows[key] = known.replace(turns=known.turns + (key not in seen), dollars=dollars, **counts)
            seen.add(key)
    return add_up(settled.by, rows.values())


def _so_far(root: str, turn: RunningTurn) -> list[dict[str, Any]]:
    folder = layout.session_path(root, turn.session_id, layout.SESSION_RUNTIME)
    usage = list(open_runtime(turn.runtime).usage_since(folder, turn.started_at))
    path = layout.path(root, layout.TELEMETRY)
    if usage or not os.path.exists(path):
        return usage
    with closing(Telemetry(path)) as telemetry:
        return telemetry.usage(turn.id)
