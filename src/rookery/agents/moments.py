"""What happened, from both books: the outbox (facts) and the telemetry (doings), in the order of time."""

from __future__ import annotations

import os

from rookery.agents.records import describe
from rookery.base import call as calls
from rookery.base.record import Record
from rookery.events import store as events
from rookery.events.telemetry import Telemetry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rookery.agents.home import Home
    from rookery.events.model import Event
    from rookery.events.telemetry import Entry

_POLL_SECONDS = 0.15
_BAD = {"turn.lost", "merge.failed"}


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


class Filter(Record):
    """Which moments are wanted."""

    agents: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    since: str | None = None
    errors: bool = False
    doings_only: bool = False

    def fits(self, moment: Moment) -> bool:
        """True if the moment is wanted."""
        if self.agents and moment.agent not in self.agents and moment.subject not in self.agents:
            return False
        if self.subjects and moment.subject not in self.subjects and moment.data.get("task_id") not in self.subjects:
            return False
        return moment.is_error or not self.errors


def read(home: Home, wanted: Filter, limit: int) -> list[Moment]:
    """The newest moments that fit, in order."""
    found = [moment for moment in _all(home, wanted, 0, 0)[0] if wanted.fits(moment)]
    return found[-limit:] if limit else found


def follow(home: Home, wanted: Filter, limit: int) -> Iterator[Moment]:
    """The newest moments that fit, and then every further one as it happens."""
    moments, seen, done = _all(home, wanted, 0, 0)
    yield from [moment for moment in moments if wanted.fits(moment)][-limit:]
    while True:
        moments, seen, done = _all(home, wanted, seen, done)
        yield from (moment for moment in moments if wanted.fits(moment))
        calls.sleep(_POLL_SECONDS)


def _all(home: Home, wanted: Filter, after_event: int, after_entry: int) -> tuple[list[Moment], int, int]:
    facts: list[Event] = []
    if not wanted.doings_only:
        facts = events.read(home.db, after=after_event, since=wanted.since if not after_event else None)
    doings: list[Entry] = []
    path = home.path("telemetry.db")
    if os.path.exists(path):
        telemetry = Telemetry(path)
        doings = telemetry.read(after=after_entry, since=wanted.since if not after_entry else None)
        telemetry.close()
    moments = [_of_event(each) for each in facts] + [_of_entry(each) for each in doings]
    last_event = max([after_event, *(each.seq for each in facts)])
    last_entry = max([after_entry, *(each.seq for each in doings)])
    return sorted(moments, key=lambda moment: moment.at), last_event, last_entry


def _of_event(event: Event) -> Moment:
    told = event.data.get("set", event.data)
    outcome = told.get("outcome") if isinstance(told, dict) else None
    is_error = event.type in _BAD or outcome in ("crashed", "failed") or event.data.get("ok") is False
    return Moment(
        event.at,
        event.actor,
        event.type,
        _gist(event),
        is_error,
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
