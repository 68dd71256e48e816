"""The outbox's table. It only grows, so every query uses an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from rookery.base.clock import seconds_of
from rookery.base.ids import EVENT, new_id
from rookery.base.json import dumps, loads
from rookery.db.database import Database
from rookery.db.dialect import conditions, equals
from rookery.events.model import Event, is_error

Condition = tuple[list[str], list[object]]

TIMES_EVERY = 100
CLOCK, CLOCK_SET_BACK = "clock", "clock.set_back"
KEEP_TIME = (
    "INSERT INTO {times} (latest, seq) "
    "SELECT max(added.at, coalesce((SELECT max(latest) FROM {times}), '')), added.seq "
    "FROM (SELECT max(at) AS at, max(seq) AS seq FROM {table} WHERE seq > coalesce("
    "(SELECT seq FROM {times} ORDER BY latest DESC, seq DESC LIMIT 1), 0)) AS added"
)
"""Records the latest time of all rows. Not a trigger: one that does nothing doubles the work of an insert."""


def publish(db: Database, kind: str, subject: str, data: dict[str, Any], *, actor: str, at: str) -> None:
    """Add an event to the transaction that makes it true."""
    db.execute(
        "INSERT INTO events (id, at, type, actor, subject, data, is_error) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (new_id(EVENT), at, kind, actor, subject, dumps(data), int(is_error(kind, data))),
    )
    if db.inserted % TIMES_EVERY == 0:
        db.execute(KEEP_TIME.format(table="events", times="event_times"))


class Bounds(TypedDict, total=False):
    """Which rows of a long table to read, the oldest first, and how many."""

    after: int
    before: int | None
    """The numbers between which they are."""
    since: str | None
    errors: bool
    """Only what went wrong."""
    limit: int
    newest: bool
    """With a limit: the last ones instead of the first."""


def read(
    db: Database,
    *,
    kinds: tuple[str, ...] = (),
    actor: str | None = None,
    subject: str | None = None,
    **bounds: Unpack[Bounds],
) -> list[Event]:
    """Events in the order of their commits."""
    columns = {"subject": subject, "actor": actor}
    about = equals(columns)
    where, values = condition(db, "event_times", columns, bounds)
    parts = [(where, values)]
    if kinds or (about[0] and not bounds.get("errors")):
        types = dict.fromkeys(name for kind in kinds for name in (kind, *_types(db, about, f"{kind}.", f"{kind}/")))
        parts = [([*where, "type = ?"], [*values, name]) for name in types or _types(db, about, "", "~")]
    rows = select(db, f"SELECT {', '.join(Event.field_names())} FROM events", parts, bounds)
    return [Event(seq, id_, at, kind, by, on, loads(data)) for seq, id_, at, kind, by, on, data in rows]


def condition(db: Database, times: str, columns: Mapping[str, object], bounds: Bounds) -> Condition:
    """What columns, number, time and failure of a row must be; `times` is the table that `KEEP_TIME` fills."""
    after, since = bounds.get("after", 0), bounds.get("since")
    if since is not None:
        # A number at most a hundred or so before the first row since then. One bound: of two, SQLite uses the first.
        sql = f"SELECT seq FROM {times} WHERE latest < ? ORDER BY latest DESC, seq DESC LIMIT 1"
        after = max(after, int(db.value(sql, (since,)) or 0))
    equal = {f"{name} = ?": value for name, value in columns.items()}
    where, values = conditions({**equal, "seq > ?": after, "seq < ?": bounds.get("before"), "at >= ?": since})
    return [*where, *["is_error = 1"] * bounds.get("errors", False)], values


def select(db: Database, columns: str, parts: list[Condition], bounds: Bounds) -> list[tuple[Any, ...]]:
    """The rows of all parts together. Each is in order by its index, so SQLite reads no more of it than it needs."""
    if not parts:
        return []
    sql = " UNION ALL ".join(f"{columns} WHERE {' AND '.join(where)}" for where, _ in parts)
    values = [value for _, of_part in parts for value in of_part]
    newest = bounds.get("newest", False)
    rows = db.all(f"{sql} ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?", [*values, bounds.get("limit", -1)])
    return rows[::-1] if newest else rows


def _types(db: Database, about: Condition, low: str, high: str) -> list[str]:
    """The types that there are from one text up to another: one look into the index for each, however many events."""
    where, values = about
    whole = " AND ".join([*where, "type {} ?", "type < ?"])
    first, following = (whole.format(sign) for sign in (">=", ">"))
    types: list[str] = []
    name = db.value(f"SELECT min(type) FROM events WHERE {first}", [*values, low, high])
    while name is not None:
        types.append(name)
        name = db.value(f"SELECT min(type) FROM events WHERE {following}", [*values, name, high])
    return types


def last_actor(db: Database, kind: str, subject: str) -> str | None:
    """The last actor of an event of that type about a subject; None if there is no such event."""
    sql = "SELECT actor FROM events WHERE subject = ? AND type = ? ORDER BY seq DESC LIMIT 1"
    actor: str | None = db.value(sql, (subject, kind))
    return actor


def last_data(db: Database, kind: str, subject: str, *, since: str, before: str | None = None) -> dict[str, Any] | None:
    """What the last event of that type about a subject says, if there is one since a time, and before another."""
    sql = "SELECT data FROM events WHERE subject = ? AND type = ? AND at >= ?"
    until, values = ("", ()) if before is None else (" AND at < ?", (before,))
    data = db.value(f"{sql}{until} ORDER BY seq DESC LIMIT 1", (subject, kind, since, *values))
    return None if data is None else dict(loads(data))


def last_seq(db: Database) -> int:
    """The number of the newest event."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM events"))


def latest_time(db: Database) -> float:
    """The latest time of the newest events, since the clock was last seen to be set back; 0 without events.

    The newest event alone may have been written after the clock was set back.
    """
    sql = (
        "SELECT max(at) FROM (SELECT at FROM events WHERE seq >= coalesce((SELECT max(seq) FROM events "
        "WHERE type = ? AND subject = ?), 0) ORDER BY seq DESC LIMIT ?) AS newest"
    )
    at = db.value(sql, (CLOCK_SET_BACK, CLOCK, TIMES_EVERY))
    return 0.0 if at is None else seconds_of(at)


def oldest(db: Database, kinds: tuple[str, ...], before: str, limit: int) -> list[Event]:
    """The oldest events of families of types, such as `turn`, from before a time."""
    families = " OR ".join(["(type >= ? AND type < ?)"] * len(kinds))
    bounds = [bound for kind in kinds for bound in (f"{kind}.", f"{kind}/")]
    rows = db.all(
        f"SELECT {', '.join(Event.field_names())} FROM events WHERE ({families}) AND at < ? ORDER BY seq LIMIT ?",
        [*bounds, before, limit],
    )
    return [Event(seq, id_, at, kind, by, on, loads(data)) for seq, id_, at, kind, by, on, data in rows]


def delete(db: Database, events: list[Event]) -> None:
    """Delete events that are kept elsewhere."""
    db.execute_many("DELETE FROM events WHERE seq = ?", [(event.seq,) for event in events])
