"""How the whole project stands, derived on read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rookery.base.clock import seconds_of, stamp
from rookery.base.record import Record
from rookery.inbox.service import count_open
from rookery.ops.context import Context
from rookery.status import service as status
from rookery.status.service import AgentStatus
from rookery.tasks.listing_store import progress
from rookery.tasks.model import Progress
from rookery.worktrees.place import agents_on_disk

_RECENTLY = 3600.0
"""Agents that ended so many seconds ago are shown unless all are asked for."""


@dataclass(frozen=True, slots=True)
class WorktreeCount(Record):
    """How many worktrees of agents there are."""

    total: int
    without_agent: int
    """Of agents that have ended."""


@dataclass(frozen=True, slots=True)
class Overview(Record):
    """The project at one look."""

    PRINTS = "agents"
    at: str
    inbox: int
    """How many things wait for a person."""
    agents: tuple[AgentStatus, ...]
    """All that are alive."""
    ended: tuple[AgentStatus, ...]
    """Those that ended within the hour, or all, the last one first."""
    worktrees: WorktreeCount
    tasks: Progress


def overview(ctx: Context, *, all_ended: bool = False, screens: Mapping[str, str] | None = None) -> Overview:
    """How the project stands now."""
    now = ctx.now()
    alive = status.sessions_by_agent(ctx.db)
    since = "" if all_ended else stamp(seconds_of(now) - _RECENTLY)
    ended = list(status.ended_since(ctx.db, since, alive).values())
    ended.sort(key=lambda session: session.ended_at or "", reverse=True)
    folders = agents_on_disk(ctx)
    return Overview(
        now,
        count_open(ctx),
        tuple(status.describe(ctx, alive.values(), screens)),
        tuple(status.describe(ctx, ended)),
        WorktreeCount(len(folders), sum(name not in alive for name in folders)),
        progress(ctx.db, None, now),
    )
