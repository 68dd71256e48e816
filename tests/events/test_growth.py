"""What is asked of events and records costs what it answers: a longer history adds nothing.

Measured in steps of SQLite's machine, with a short and a long history of rows that resemble what is asked for. A plan
alone does not tell: an index that is read from some place to its end is no scan.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from rookery.config.environ import read_environ
from rookery.config.layout import FOLDER
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.events import store
from rookery.events.telemetry import Telemetry
from rookery.ops.context import Context
from rookery.status import activity
from rookery.status.activity import EVENTS, TOOLS, Query, about, rows, show_rows
from templates import copy_database

_SHORT, _LONG = 1_500, 12_000
_SLACK = 400
"""Steps that a question may cost more: an index of more rows, and a page of times that begins elsewhere."""
_OLD, _RECENT, _LATE = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"
_TYPES = ("task.updated", "task.created", "agent.waiting", "turn.ended", "merge.queued", "mail.sent")
_KINDS = ("tool", "text", "usage", "file", "denied")


class Past:
    """A project with a long, healthy history between a few rows of every kind."""

    def __init__(self, root: Path, rows: int) -> None:
        (root / FOLDER).mkdir(parents=True)
        copy_database(database_path(str(root)))
        self.db = Database.open(database_path(str(root)))
        self.ctx = Context.at(str(root), self.db, load_config(str(root), read_environ({}), {}).config)
        self.records = Telemetry(self.ctx.path("telemetry.db"))
        with self.db.write(), self.records.db.write():
            self._add_few(_OLD)
            self._add_many(rows)
            self._add_few(_LATE)

    def _add_few(self, at: str) -> None:
        """Some of which most questions want only these."""
        for actor, subject in (("bee", "t"), ("ant", "bee")):
            store.publish(self.db, "turn.ended", subject, {"ok": False}, actor=actor, at=at)
            store.publish(self.db, "rare.told", subject, {}, actor=actor, at=at)
            who: dict[str, Any] = {"at": at, "agent": actor, "session_id": f"s-{actor}", "turn_id": "now"}
            self.records.add(kind="tool", is_error=True, data={"ok": False}, **who)
            self.records.add(kind="usage", data={"input": 1}, **who)
            self.records.add(kind="denied", data={"id": "call"}, **who)

    def _add_many(self, rows: int) -> None:
        """Rows that share one or two properties with what is asked for, and no more."""
        kinds = itertools.product(("bee", "ant", "human"), ("t", "bee", "x"), _TYPES)
        for number, (actor, subject, kind) in zip(range(rows), itertools.cycle(kinds), strict=False):
            at = _OLD if number < rows // 2 else _RECENT
            store.publish(self.db, kind, subject, {"ok": True}, actor=actor, at=at)
        does = itertools.product(("bee", "ant"), _KINDS)
        for number, (agent, kind) in zip(range(rows), itertools.cycle(does), strict=False):
            self.records.add(
                at=_OLD if number < rows // 2 else _RECENT,
                agent=agent,
                session_id=f"s-{agent}",
                turn_id=f"turn-{number // 100}",
                kind=kind,
                name=f"f{number % 7}",
                data={"id": f"call-{number}"},
            )

    def close(self) -> None:
        self.records.close()
        self.db.close()


@pytest.fixture(scope="module")
def pasts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Past, Past]]:
    pair = Past(tmp_path_factory.mktemp("short"), _SHORT), Past(tmp_path_factory.mktemp("long"), _LONG)
    yield pair
    for past in pair:
        past.close()


@contextmanager
def _counting(*connections: apsw.Connection) -> Iterator[list[int]]:
    steps = [0]

    def count() -> bool:
        steps[0] += 1
        return False

    for connection in connections:
        connection.set_progress_handler(count, 1)
    try:
        yield steps
    finally:
        for connection in connections:
            connection.set_progress_handler(None)


def _growth(pasts: tuple[Past, Past], ask: Callable[[Past], object]) -> int:
    """How many steps more a question takes in the longer history."""
    taken = []
    for past in pasts:
        with _counting(past.db.connection, past.records.db.connection) as steps:
            ask(past)
        taken.append(steps[0])
    assert taken[0] > 0
    return taken[1] - taken[0]


_TIMES = (None, _OLD, _RECENT, _LATE)
_OF_EVENTS: tuple[dict[str, Any], ...] = (
    {},
    {"kinds": ("rare",)},
    {"kinds": ("task", "turn.ended")},
    {"actor": "bee"},
    {"actor": "bee", "kinds": ("rare",)},
    {"actor": "human", "kinds": ("task",)},
    {"subject": "t"},
    {"subject": "t", "kinds": ("rare", "merge")},
    {"errors": True},
    {"errors": True, "actor": "bee"},
    {"errors": True, "subject": "bee"},
)
_OF_RECORDS: tuple[dict[str, Any], ...] = (
    {},
    {"agent": "bee"},
    {"session_id": "s-bee"},
    {"errors": True},
    {"errors": True, "agent": "bee"},
)
_EVENT_QUESTIONS: list[dict[str, Any]] = [
    {"after": after, "since": since, "newest": newest, **of}
    for after, since, newest, of in itertools.product((0, 700), _TIMES, (False, True), _OF_EVENTS)
]


def test_events_cost_what_they_answer(pasts: tuple[Past, Past]) -> None:
    growing = {
        json.dumps(options): growth
        for options in _EVENT_QUESTIONS
        if (growth := _growth(pasts, lambda past, of=options: store.read(past.db, limit=5, **of))) > _SLACK  # type: ignore[misc]
    }
    assert growing == {}


_RECORD_QUESTIONS: list[dict[str, Any]] = [
    {"since": since, "newest": newest, **of}
    for since, newest, of in itertools.product(_TIMES, (False, True), _OF_RECORDS)
]


def test_records_cost_what_they_answer(pasts: tuple[Past, Past]) -> None:
    growing = {
        json.dumps(options): growth
        for options in _RECORD_QUESTIONS
        if (growth := _growth(pasts, lambda past, of=options: past.records.read(limit=5, **of))) > _SLACK  # type: ignore[misc]
    }
    assert growing == {}


_OTHER_QUESTIONS: dict[str, Callable[[Past], object]] = {
    "last_actor": lambda past: store.last_actor(past.db, "rare.told", "t"),
    "last_data": lambda past: store.last_data(past.db, "rare.told", "t", since=_OLD),
    "last_data, and there is none": lambda past: store.last_data(past.db, "rare.told", "bee", since=_OLD),
    "last_seq": lambda past: store.last_seq(past.db),
    "latest_time": lambda past: store.latest_time(past.db),
    "records last_seq": lambda past: past.records.last_seq(),
    "usage": lambda past: past.records.usage("now"),
    "is_denied": lambda past: past.records.is_denied("s-bee", "call"),
    "is_denied, and is not": lambda past: past.records.is_denied("s-bee", "other"),
    "read_offset": lambda past: past.records.read_offset("turn-1"),
}


@pytest.mark.parametrize("name", _OTHER_QUESTIONS)
def test_other_questions_cost_what_they_answer(pasts: tuple[Past, Past], name: str) -> None:
    assert _growth(pasts, _OTHER_QUESTIONS[name]) <= _SLACK


def test_domains_are_those_of_a_bounded_number_of_changes(pasts: tuple[Past, Past]) -> None:
    assert sum(pasts[1].records.changed_files("bee").values()) == 1_000
    assert _growth((pasts[1], pasts[1]), lambda past: past.records.changed_files("bee")) == 0


_FEEDS = {
    "errors": Query(errors=True),
    "errors --since": Query(errors=True, since=_RECENT),
    "errors --agent": about("bee").replace(errors=True),
    "feed": Query(),
    "feed --agent": about("bee"),
    "trace TASK": Query(subjects=("t", "bee")),
    "trace --since": about("bee").replace(since=_LATE),
    "logs": about("bee").replace(source=TOOLS),
    "logs --since": Query(TOOLS, since=_RECENT),
}


@pytest.mark.parametrize("name", _FEEDS)
def test_feeds_cost_what_they_show(pasts: tuple[Past, Past], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(past: Past) -> None:
        monkeypatch.setattr(activity, "Telemetry", lambda _path: past.records)
        monkeypatch.setattr(past.records, "close", lambda: None)
        assert list(rows(past.ctx, _FEEDS[name].replace(limit=4)))
        monkeypatch.undo()

    assert _growth(pasts, ask) <= _SLACK


_ALL_OF = {
    "errors --limit 0": Query(errors=True),
    "trace --limit 0": about("bee"),
    "replay": about("bee", "human").replace(since=_OLD),
    "events --limit 0": Query(EVENTS),
}


@pytest.mark.parametrize("name", _ALL_OF)
def test_the_first_of_all_rows_does_not_wait_for_the_others(
    pasts: tuple[Past, Past], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(past: Past) -> None:
        monkeypatch.setattr(activity, "Telemetry", lambda _path: past.records)
        monkeypatch.setattr(past.records, "close", lambda: None)
        assert next(rows(past.ctx, _ALL_OF[name]))
        monkeypatch.undo()

    assert _growth(pasts, ask) <= 3 * _SLACK  # several questions for each agent


def test_all_rows_are_those_of_a_limit_that_is_never_reached(pasts: tuple[Past, Past]) -> None:
    for query in (*_FEEDS.values(), *_ALL_OF.values()):
        streamed = [(type(row), row.seq) for row in rows(pasts[0].ctx, query)]
        assert sorted(streamed, key=str) == sorted(
            ((type(row), row.seq) for row in rows(pasts[0].ctx, query.replace(limit=1_000_000))), key=str
        )
        assert len(set(streamed)) == len(streamed) > 0


def test_errors_are_the_same_however_they_are_found(pasts: tuple[Past, Past]) -> None:
    everything = show_rows(pasts[0].ctx, Query())
    failed = list(show_rows(pasts[0].ctx, Query(errors=True)))
    assert failed == [row for row in everything if row.is_error]
    assert len(failed) == 8


def test_growth_would_be_seen(pasts: tuple[Past, Past]) -> None:
    by_an_index = "SELECT count(*) FROM events WHERE type > 'task'"
    assert _growth(pasts, lambda past: past.db.value(by_an_index)) > _SLACK
    assert _growth(pasts, lambda past: past.db.value("SELECT max(id) FROM events")) > _SLACK
