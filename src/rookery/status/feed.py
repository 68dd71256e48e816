"""What happened, from both books: the outbox (facts) and the telemetry (doings), in the order of time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.config import layout
from rookery.db.commits import Commits
from rookery.events import store as events
from rookery.events.model import Event, is_error
from rookery.events.telemetry import Entry, Telemetry
from rookery.ops.context import Context
from rookery.sessions.log import describe

Place = tuple[int, int]

_LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Moment(Record):
    """One thing that happened."""

    at: str
    agent: str
    kind: str
    text: str
    is_error: bool
    subject: str
    turn_id: str | None
    millis: int | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter(Record):
    """Which moments are wanted."""

    agents: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    since: str | None = None
    errors: bool = False
    doings_only: bool = False


def read(ctx: Context, wanted: Filter, limit: int) -> list[Moment]:
    """The newest moments that fit, in order; all of them if there is no limit."""
    return _newest(ctx, wanted, limit, _ends(ctx))


def follow(ctx: Context, wanted: Filter, limit: int) -> Iterator[Moment]:
    """The newest moments that fit, and then every further one as it happens."""
    ends = _ends(ctx)
    yield from _newest(ctx, wanted, limit, ends)
    with Commits(ctx.db.path) as commits:
        while True:
            begins, ends = ends, _ends(ctx)
            if begins != ends:
                yield from _between(ctx, wanted, begins, ends)
            commits.wait(_LONGEST_SECONDS)


def _ends(ctx: Context) -> Place:
    """How far the outbox and the telemetry go just now."""
    path = ctx.path(layout.TELEMETRY)
    if not os.path.exists(path):
        return events.last_seq(ctx.db), 0
    telemetry = Telemetry(path)
    try:
        return events.last_seq(ctx.db), telemetry.last_seq()
    finally:
        telemetry.close()


def _newest(ctx: Context, wanted: Filter, limit: int, ends: Place) -> list[Moment]:
    """Of both books the last moments up to a place."""
    found = _between(ctx, wanted, (0, 0), ends, limit or -1)
    return found[-limit:] if limit else found


def _between(ctx: Context, wanted: Filter, begins: Place, ends: Place, limit: int = -1) -> list[Moment]:
    """What came between two places, of each book the newest so many."""
    found = [
        moment
        for source, begin, end in zip((_facts, _doings), begins, ends, strict=True)
        for moment in source(ctx, wanted, begin, end + 1, limit)
    ]
    return sorted(found, key=lambda moment: moment.at)


def _facts(ctx: Context, wanted: Filter, after: int, before: int, limit: int) -> list[Moment]:
    """The last events between two numbers that are wanted, oldest first."""
    if wanted.doings_only:
        return []
    about: list[dict[str, Any]] = [{"actor": name} for name in wanted.agents]
    about += [{"subject": name} for name in wanted.agents or wanted.subjects]
    found = {
        event.seq: event
        for each in about or [{}]
        for event in events.read(
            ctx.db,
            after=after,
            before=before,
            since=wanted.since,
            errors=wanted.errors,
            limit=limit,
            newest=True,
            **each,
        )
    }
    return [_of_event(found[seq]) for seq in _last(found, limit)]


def _doings(ctx: Context, wanted: Filter, after: int, before: int, limit: int) -> list[Moment]:
    """The last records between two numbers that are wanted, oldest first."""
    path = ctx.path(layout.TELEMETRY)
    if not os.path.exists(path):
        return []
    telemetry = Telemetry(path)
    try:
        found = {
            entry.seq: entry
            for name in wanted.agents or wanted.subjects or (None,)
            for entry in telemetry.read(
                after=after,
                before=before,
                agent=name,
                errors=wanted.errors,
                since=wanted.since,
                limit=limit,
                newest=True,
            )
        }
    finally:
        telemetry.close()
    return [_of_entry(found[seq]) for seq in _last(found, limit)]


def _last(numbers: Iterable[int], limit: int) -> list[int]:
    return sorted(numbers)[-limit:] if limit > 0 else sorted(numbers)


def _of_event(event: Event) -> Moment:
    return Moment(
        event.at,
        event.actor,
        event.type,
        _gist(event),
        is_error(event.type, event.data),
        event.subject,
        event.data.get("turn_id"),
        None,
        event.data,
    )


def _gist(event: Event) -> str:
    data = event.data
    told = data.get("task") or data.get("learning") or data.get("session") or data.get("set") or data
    for key in ("title", "content", "subject", "reason", "outcome", "cause", "state", "step"):
        if told.get(key):
            return str(told[key])
    return ""


def _of_entry(entry: Entry) -> Moment:
    text = f"{entry.name} {describe(entry.data)}".strip() if entry.name else describe(entry.data)
    return Moment(
        entry.at, entry.agent, entry.kind, text, entry.is_error, entry.agent, entry.turn_id, entry.millis, entry.data
    )
