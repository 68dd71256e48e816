"""What happened, from the outbox (events) and the telemetry (tool calls): the query behind `rook events`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import product, takewhile
from typing import Any

from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.config import layout
from rookery.db.commits import Commits
from rookery.events import store
from rookery.events.model import Event, is_error
from rookery.events.telemetry import Entry, Telemetry
from rookery.ops.context import Context
from rookery.sessions import store as sessions
from rookery.sessions.log import describe, explain
from rookery.sessions.model import Session

EVENTS, TOOLS, ALL, LOG = "events", "tools", "all", "log"
"""Where to read: the outbox, the telemetry, or both in the order of time; a log has the telemetry and some events."""

Row = Event | Entry
Read = Callable[..., Sequence[Row]]
"""One question, which takes the bounds of what to read."""
Position = tuple[int, int]
"""The number of the last event, and of the last record of the telemetry."""

_LONGEST_SECONDS = 60.0
_PART = 500
"""How many rows are read at a time where all are wanted."""
_BAD = ("error", "warn")
"""Levels at which only events show that say that something went wrong."""
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
    """Types of events, or their families. Tool calls have none, and are left out where only events are asked for."""
    since: str | None = None
    errors: bool = False
    level: str | None = None
    """Of tool calls, only those of this level of telemetry and above."""
    after: int | None = None
    """The number of an event: read on from there, instead of the newest rows."""
    limit: int = -1


def about(*agents: str) -> Query:
    """What these agents did, and what happened to them; everything if none is named."""
    return Query(actors=agents, subjects=agents, either=True)


def rows(
    ctx: Context, query: Query, *, follow: bool = False, is_over: Callable[[], bool] = lambda: False
) -> Iterator[Row]:
    """What fits, in order: the newest rows or those after a number; with `follow`, then every further one.

    Following ends when `is_over` says that nothing more can come.
    """
    end = _last(ctx)
    if query.limit < 0:
        yield from _stream(ctx, query, (query.after or 0, 0), end)
    else:
        page = _read(ctx, query, (query.after or 0, 0), end)
        yield from page
        if query.after is not None and len(page) == query.limit:
            end = (page[-1].seq, end[1])  # go on where the page ended
    if not follow:
        return
    with Commits(ctx.db.path) as commits:
        while True:
            was_over = is_over()  # asked first: what came before the end is still shown
            begin, end = end, _last(ctx)
            if begin != end:
                yield from _stream(ctx, query, begin, end)
            if was_over:
                return
            commits.wait(_LONGEST_SECONDS)


def show_rows(
    ctx: Context, query: Query, *, follow: bool = False, is_over: Callable[[], bool] = lambda: False
) -> Iterator[Activity]:
    """The same, as lines to read."""
    return map(_to_activity, rows(ctx, query, follow=follow, is_over=is_over))


def show_session(ctx: Context, session: Session, *, limit: int, follow: bool = False) -> Iterator[Activity]:
    """What happened in one session of an agent, and in no other; following ends with the session."""
    query = about(session.agent).replace(since=session.created_at, limit=limit)
    latest = sessions.latest(ctx.db, session.agent)
    if latest is not None and latest.id != session.id:  # a later one follows it: the newest rows are not its own
        return iter(_rows_until(ctx, query, session)[-limit if limit > 0 else 0 :])

    def is_over() -> bool:
        return not sessions.session(ctx.db, session.id).is_alive

    return show_rows(ctx, query, follow=follow, is_over=is_over)


def _rows_until(ctx: Context, query: Query, session: Session) -> list[Activity]:
    shown = show_rows(ctx, query.replace(limit=-1))
    return list(takewhile(lambda row: row.at <= (session.ended_at or row.at), shown))


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


def _stream(ctx: Context, query: Query, begin: Position, end: Position) -> Iterator[Row]:
    """All rows between two positions, the oldest first: read in parts, so that the first are there at once."""
    events = (_parts(read, begin[0], end[0]) for read in _event_reads(ctx, query))
    calls = (_parts(read, begin[1], end[1]) for read in _call_reads(ctx, query))
    sources = (_once(merge(*events, key=_number)), _once(merge(*calls, key=_number)))
    return merge(*sources, key=lambda row: row.at)


def _read(ctx: Context, query: Query, begin: Position, end: Position) -> list[Row]:
    """So many rows between two positions: the first ones after a number, else the newest."""
    newest, limit = query.after is None, query.limit
    rows: list[Row] = []
    for reads, first, last in (
        (_event_reads(ctx, query), begin[0], end[0]),
        (_call_reads(ctx, query), begin[1], end[1]),
    ):
        read = [row for ask in reads for row in ask(after=first, before=last + 1, limit=limit, newest=newest)]
        rows += _once(iter(sorted(read, key=_number)))
    if query.source in (ALL, LOG):
        rows.sort(key=lambda row: row.at)
    return rows[-limit:] if newest else rows[:limit]


def _event_reads(ctx: Context, query: Query) -> list[Read]:
    """The questions to the outbox whose answers together are what fits; one row may be in several."""
    if query.source == TOOLS:
        return []
    pairs: Iterable[tuple[str | None, str | None]]
    if query.either:
        pairs = [*((name, None) for name in query.actors), *((None, name) for name in query.subjects)] or [(None, None)]
    else:
        pairs = product(query.actors or (None,), query.subjects or (None,))
    errors = query.errors or query.level in _BAD
    of: dict[str, Any] = {"kinds": query.types, "since": query.since, "errors": errors}
    return [partial(store.read, ctx.db, actor=actor, subject=subject, **of) for actor, subject in pairs]


def _call_reads(ctx: Context, query: Query) -> list[Read]:
    """The same of the telemetry."""
    if query.source == EVENTS or (query.types and query.source != LOG):
        return []
    agents = query.actors or query.subjects or (None,)
    if query.actors and query.subjects and not query.either:
        agents = tuple(name for name in query.actors if name in query.subjects)
    of = {"since": query.since, "errors": query.errors, "level": query.level}
    return [partial(_read_calls, ctx, agent=name, **of) for name in agents]


def _read_calls(ctx: Context, **conditions: Any) -> list[Entry]:
    with open_telemetry(ctx) as telemetry:
        return [] if telemetry is None else telemetry.read(**conditions)


def _parts(read: Read, after: int, last: int) -> Iterator[Row]:
    """What one question answers, in parts of which each is read when it is wanted; no transaction stays open."""
    while after < last:
        part = read(after=after, before=last + 1, limit=_PART)
        yield from part
        after = part[-1].seq if len(part) == _PART else last


def _once(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows in the order of their numbers, without those that come again."""
    last = 0
    for row in rows:
        if row.seq != last:
            yield row
        last = row.seq


def _number(row: Row) -> int:
    return row.seq


def _summary(event: Event) -> str:
    data = event.data
    fields = data.get("task") or data.get("learning") or data.get("session") or data.get("set") or data
    if event.type == "agent.ended":
        return ": ".join(str(fields[name]) for name in ("outcome", "reason") if fields.get(name))
    if event.type in ("agent.stopping", f"agent.{fields.get('step')}"):
        return ""  # it would say how it is done, or the same again
    if event.type == "turn.ended" and not data.get("ok"):
        by, status = data.get("interrupted_by"), data.get("exit_status")
        return f"interrupted by {by}" if by else f"exit status {status}" if status else "ended without a result"
    name = next((name for name in _SUMMARY_FIELDS if fields.get(name)), "")
    return in_words(fields[name]) if name == "state" else str(fields.get(name, ""))
