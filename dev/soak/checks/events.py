"""The events have no gap and tell the state; no call ended as only a bug lets it end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from dev.soak.checks.model import Ledger, Violation
from dev.soak.site import Call

_CATEGORIES = ("config", "database", "tasks", "agents", "merge", "vcs")
_ORDERLY = (0, 1, 130)


def check_events(db: sqlite3.Connection) -> Iterator[Violation]:
    """Numbers go up by one, and no event is there twice."""
    rows = db.execute("SELECT seq, id FROM events ORDER BY seq").fetchall()
    expected = 1
    for seq, _ in rows:
        if seq != expected:
            yield Violation("events", f"event {expected} is missing: {seq} follows {expected - 1}")
        expected = seq + 1
    seen: dict[str, int] = {}
    for seq, event in rows:
        if event in seen:
            yield Violation("events", f"event {event} is there twice: {seen[event]} and {seq}")
        seen[event] = seq


def check_states(db: sqlite3.Connection) -> Iterator[Violation]:
    """What the events say of agents and landings is what the tables say."""
    by_events: dict[str, dict[str, Any]] = {}
    for kind, subject, text in db.execute("SELECT type, subject, data FROM events ORDER BY seq"):
        family = kind.partition(".")[0]
        if family not in ("agent", "merge"):
            continue
        data = json.loads(text)
        whole = data.get("session") if family == "agent" else data.get("merge")
        key = (whole or {}).get("id") or data.get("session_id") or subject
        by_events.setdefault(key, {}).update(whole or {})
        by_events[key].update(data.get("set") or {})
    for session, outcome, step in db.execute("SELECT id, outcome, step FROM sessions ORDER BY seq"):
        yield from _compare("session", session, by_events, {"outcome": outcome, "step": step})
    for merge, state, candidate in db.execute("SELECT id, state, candidate FROM merges ORDER BY seq"):
        yield from _compare("merge", merge, by_events, {"state": state, "candidate": candidate})


def _compare(kind: str, key: str, by_events: dict[str, dict[str, Any]], row: dict[str, Any]) -> Iterator[Violation]:
    if key not in by_events:
        yield Violation("events", f"{kind} {key} is there, and no event tells of it")
        return
    for name, value in row.items():
        if by_events[key].get(name) != value:
            yield Violation("events", f"{kind} {key} has {name} {value}, and by its events {by_events[key].get(name)}")


_ONCE = {
    "agent.reserved": "$.session.id",
    "agent.ended": "$.session_id",
    "turn.started": "$.turn_id",
    "turn.ended": "$.turn_id",
    "turn.lost": "$.turn_id",
}
_ONCE_FOR_SUBJECT = ("task.created", "merge.landed", "worktree.cleaned")


def check_once(db: sqlite3.Connection) -> Iterator[Violation]:
    """What can happen only once has one event: here no agent gets the name of another, and nothing is undone."""
    for kind, path in _ONCE.items():
        yield from _check_doubles(db, kind, f"json_extract(data, '{path}')")
    for kind in _ONCE_FOR_SUBJECT:
        yield from _check_doubles(db, kind, "subject")


def _check_doubles(db: sqlite3.Connection, kind: str, key: str) -> Iterator[Violation]:
    query = f"SELECT {key}, group_concat(seq) FROM events WHERE type = ? GROUP BY 1 HAVING count(*) > 1 ORDER BY 1"
    for subject, numbers in db.execute(query, (kind,)):
        yield Violation("events", f"{kind} of {subject} is told more than once: events {numbers}")


def check_doctor(report: dict[str, Any]) -> Iterator[Violation]:
    """The doctor finds nothing in what concerns the project's state."""
    for check in report["checks"]:
        if check["category"] in _CATEGORIES and check["status"] != "ok":
            yield Violation("doctor", f"{check['category']}/{check['name']}: {check['message']}")


def check_calls(calls: Iterable[Call], ledger: Ledger) -> Iterator[Violation]:
    """Every call ended in time, and none by a bug of ours, whatever was killed or full meanwhile."""
    for call in calls:
        words = " ".join(word[:60] for word in call.words)
        if call.is_hung:
            yield Violation("calls", f"rook {words} did not end")
        elif "Traceback" in call.err or (call.status not in _ORDERLY and not call.is_killed):
            output = (call.err.strip() or call.out.strip())[-600:]
            yield Violation("calls", f"rook {words} ended with {call.status}: {output}")
    for trouble in ledger.troubles:
        words = " ".join(str(word)[:60] for word in trouble["words"])
        status = trouble.get("status", trouble["what"])
        if status == -9:
            continue
        yield Violation(
            "calls", f"in a turn of {trouble['agent']}: {words} ended with {status}: {trouble['err'][-600:]}"
        )
