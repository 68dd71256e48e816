"""What turns that are still running have used so far, added to what is settled.

A program that tells of usage as it goes has it in the telemetry; Claude Code has it in its transcripts, where each
message bears its time.
"""

from __future__ import annotations

import os
from typing import Any

from rookery.config import layout
from rookery.config.model import Config
from rookery.costs.prices import price
from rookery.costs.store import GROUPINGS, TASKS, TURN_NAME, Cost, Costs, add_up
from rookery.db.database import Database
from rookery.events.telemetry import Telemetry
from rookery.runtimes.registry import open_runtime

_KINDS = ("input", "output", "cache_read", "cache_write")


def add_running(
    db: Database, root: str, config: Config, settled: Costs, *, agent: str | None, run: str | None
) -> Costs:
    """The costs with what is under way, the dearest first."""
    rows = {cost.name: cost for cost in settled.rows}
    column = GROUPINGS[settled.by] if settled.by != "model" else "''"
    for name, turn_id, session_id, runtime, model, started_at in db.all(
        f"SELECT {column}, s.turn_id, s.id, s.runtime, s.model, s.started_at FROM ("
        f"SELECT s.id, s.agent, s.role, s.task_id, s.run_id, s.runtime, s.model, "
        f"n.id AS turn_id, n.started_at, {TURN_NAME} "
        f"FROM turns n JOIN sessions s ON s.id = n.session_id WHERE n.state = 'running') s {TASKS} "
        "WHERE (?1 IS NULL OR s.agent = ?1) AND (?2 IS NULL OR s.run_id = ?2)",
        (agent, run),
    ):
        seen: set[str] = set()
        for used in _so_far(root, runtime, session_id, turn_id, started_at):
            priced = price(used, model, config)
            key = priced["model"] if settled.by == "model" else name
            known = rows.get(key, Cost(key, 0, 0, 0, 0, 0, 0.0))
            counts = {kind: getattr(known, kind) + priced[kind] for kind in _KINDS}
            dollars = known.dollars + priced["cost_micros"] / 1_000_000
            rows[key] = known.replace(turns=known.turns + (key not in seen), dollars=dollars, **counts)
            seen.add(key)
    return add_up(settled.by, rows.values())


def _so_far(root: str, runtime: str, session_id: str, turn_id: str, started_at: str) -> list[dict[str, Any]]:
    folder = layout.session_path(root, session_id, layout.SESSION_RUNTIME)
    found = list(open_runtime(runtime).usage_since(folder, started_at))
    path = layout.path(root, layout.TELEMETRY)
    if found or not os.path.exists(path):
        return found
    telemetry = Telemetry(path)
    try:
        return telemetry.usage(turn_id)
    finally:
        telemetry.close()
