"""What happened, from the outbox (events) and the telemetry (tool calls): the query behind `rook events`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

from rookery.base.record import Record
from rookery.config import layout
from rookery.db.commits import Commits
from rookery.events import store
from rookery.events.model import Event, is_error
from rookery.events.telemetry import Entry, Telemetry
from rookery.ops.context import Context
from rookery.sessions.log import describe, explain

EVENTS, TOOLS, ALL = "events", "tools", "all"
"""Where to read: the outbox, the telemetry, or both in the order of time."""

Row = Event | Entry
Position = tuple[int, int]
"""The number of the last event, and of the last record of the telemetry."""

_LONGEST_SECONDS = 60.0
_SUMMARY_FIELDS = ("title", "content", "subject", "reason", "outcome", "cause", "state", "step")


@dataclass(frozen=True, slots=True)
class Activity(Record):
    """An event or a tool call, as a line to read."""

    at: str
    agent: str
    kind: str
    text: str
    is_error: bool
    subject: str
    turn_id: str | None
    millis: int | None
    data: dict[str, Any]
    why: str = ""
    """Why a call was denied, or how it failed."""


@dataclass(frozen=True, slots=True)
class Query(Record):
    """What to read; conditions add up."""

    source: str = ALL
    actors: tuple[str, ...] = ()
    """Events that they caused, and their tool calls."""
    subjects: tuple[str, ...] = ()
    """Events about them and, without actors, tool calls of those that are agents."""
    either: bool = False
    """An event fits by its actor or by its subject; otherwise by both."""
    types: tuple[str, ...] = ()
    """Types of events, or their families. Tool calls have none, and are left out."""
    since: str | None = None
    errors: bool = False
    after: int | None = None
    """The number of an event: read on from there, instead of the newest rows."""
    limit: int = -1


def about(*agents: str) -> Query:
    """What these agents did, and what happened to them; everything if none is named."""
    return Query(actors=agents, subjects=agents, either=True)


def rows(ctx: Context, query: Query, *, follow: bool = False) -> Iterator[Row]:
    """What fits, in order: the newest rows or those after a number; with `follow`, then every further one."""
    end = _last(ctx)
    page = _read(ctx, query, (query.after or 0, 0), end, query.limit)
    yield from page
    if not follow:
        return
    if query.after is not None and len(page) == query.limit:
        end = (page[-1].seq, end[1])  # go on where the page ended
    with Commits(ctx.db.path) as commits:
        while True:
            begin, end = end, _last(ctx)
            if begin != end:
                yield from _read(ctx, query, begin, end)
            commits.wait(_LONGEST_SECONDS)


def show_rows(ctx: Context, query: Query, *, follow: bool = False) -> Iterator[Activity]:
    """The same, as lines to read."""
    return map(_to_activity, rows(ctx, query, follow=follow))


def _to_activity(row: Row) -> Activity:
    if isinstance(row, Event):
        failed = is_error(row.type, row.data)
        turn_id = row.data.get("turn_id")
        return Activity(row.at, row.actor, row.type, _summary(row), failed, row.subject, turn_id, None, row.data)
    text = f"{row.name} {describe(row.data)}".strip() if row.name else describe(row.data)
    why = explain(row.data)
    return Activity(row.at, row.agent, row.kind, text, row.is_error, row.agent, row.turn_id, row.millis, row.data, why)


def open_telemetry(ctx: Context) -> AbstractContextManager[Telemetry | None]:
    """The project's telemetry; None if there is none yet, since to open it would make the file."""
    path = ctx.path(layout.TELEMETRY)
    return closing(Telemetry(path)) if os.path.exists(path) else nullcontext()


def _last(ctx: Context) -> Position:
    """How far the outbox and the telemetry go now."""
    with open_telemetry(ctx) as telemetry:
        return store.last_seq(ctx.db), 0 if telemetry is None else telemetry.last_seq()


def _read(ctx: Context, query: Query, begin: Position, end: Position, limit: int = -1) -> list[Row]:
    """The rows between two positions: those after a number from there on, else the newest."""
    newest = query.after is None
    bounds = {"since": query.since, "errors": query.errors, "limit": limit, "newest": newest}
    rows = _events(ctx, query, after=begin[0], before=end[0] + 1, **bounds)
    rows += _tool_calls(ctx, query, after=begin[1], before=end[1] + 1, **bounds)
    if query.source == ALL:
        rows.sort(key=lambda row: row.at)
    if limit < 0:
        return rows
    return rows[-limit:] if newest else rows[:limit]


def _events(ctx: Context, query: Query, **bounds: Any) -> list[Row]:
    if query.source == TOOLS:
        return []
    pairs: Iterable[tuple[str | None, str | None]]
    if query.either:
        pairs = [*((name, None) for name in query.actors), *((None, name) for name in query.subjects)] or [(None, None)]
    else:
        pairs = product(query.actors or (None,), query.subjects or (None,))
    events = {
        event.seq: event
        for actor, subject in pairs
        for event in store.read(ctx.db, kinds=query.types, actor=actor, subject=subject, **bounds)
    }
    return [events[seq] for seq in sorted(events)]


def _tool_calls(ctx: Context, query: Query, **bounds: Any) -> list[Row]:
    if query.source == EVENTS or query.types:
        return []
    with open_telemetry(ctx) as telemetry:
        if telemetry is None:
            return []
        agents = query.actors or query.subjects or (None,)
        if query.actors and query.subjects and not query.either:
            agents = tuple(name for name in query.actors if name in query.subjects)
        entries = {entry.seq: entry for name in agents for entry in telemetry.read(agent=name, **bounds)}
    return [entries[seq] for seq in sorted(entries)]


def _summary(event: Event) -> str:
    data = event.data
    fields = data.get("task") or data.get("learning") or data.get("session") or data.get("set") or data
    return next((str(fields[name]) for name in _SUMMARY_FIELDS if fields.get(name)), "")
