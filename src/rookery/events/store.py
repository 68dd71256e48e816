"""The outbox's table. Whatever is asked of it is found by an index: it only grows."""

from __future__ import annotations

from rookery.base.ids import EVENT, new_id
from rookery.base.json import dumps, loads
from rookery.events.model import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.db.database import Database

    Condition = tuple[list[str], list[object]]

# The types of a family, one look into the index for each, however many events there are of it.
_TYPES = (
    "WITH RECURSIVE known (type) AS (SELECT min(type) FROM events WHERE type >= ?1 AND type < ?2 "
    "UNION ALL SELECT (SELECT min(type) FROM events WHERE type > known.type AND type < ?2) FROM known "
    "WHERE known.type IS NOT NULL) SELECT type FROM known WHERE type IS NOT NULL"
)


def publish(db: Database, kind: str, subject: str, data: dict[str, Any], *, actor: str, at: str) -> None:
    """Say what is now true; the caller's transaction also makes it true."""
    db.execute(
        "INSERT INTO events (id, at, type, actor, subject, data) VALUES (?, ?, ?, ?, ?, ?)",
        (new_id(EVENT), at, kind, actor, subject, dumps(data)),
    )


def read(
    db: Database,
    *,
    after: int = 0,
    before: int | None = None,
    since: str | None = None,
    kinds: tuple[str, ...] = (),
    actor: str | None = None,
    subject: str | None = None,
    limit: int = -1,
    newest: bool = False,
) -> list[Event]:
    """Events in the order of their commits, between two numbers; with `newest`, the last `limit` of them."""
    if since is not None:
        # Times almost always grow with the numbers, but a clock can be set back: both conditions are needed.
        # `+ 0` because SQLite would look for the least number from the first row on, not by the index of times.
        first = db.value("SELECT min(seq + 0) FROM events WHERE at >= ?", (since,))
        if first is None:
            return []
        after = max(after, first - 1)  # one bound: of two, SQLite would use the first
    where, values = ["seq > ?"], [after]  # type: Condition
    if before is not None:
        where.append("seq < ?")
        values.append(before)
    if since is not None:
        where.append("at >= ?")
        values.append(since)
    for column, value in (("actor", actor), ("subject", subject)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if not kinds:
        found = _select(db, where, values, limit, newest)
    else:
        types = dict.fromkeys(name for kind in kinds for name in _types(db, kind))
        found = [row for name in types for row in _select(db, [*where, "type = ?"], [*values, name], limit, newest)]
        found.sort(reverse=newest)
        found = found[:limit] if limit >= 0 else found
    events = [Event(seq, id_, at, kind, by, about, loads(data)) for seq, id_, at, kind, by, about, data in found]
    return events[::-1] if newest else events


def _types(db: Database, kind: str) -> list[str]:
    """The types of a family that there are, and the type itself."""
    return [kind, *(row[0] for row in db.all(_TYPES, (f"{kind}.", f"{kind}/")))]  # "/" comes right after "."


def _select(db: Database, where: list[str], values: list[object], limit: int, newest: bool) -> list[tuple[Any, ...]]:
    return db.all(
        f"SELECT seq, id, at, type, actor, subject, data FROM events WHERE {' AND '.join(where)} "
        f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?",
        [*values, limit],
    )


def last_actor(db: Database, kind: str, subject: str) -> str | None:
    """Who did something to a subject last; None if nobody did."""
    found = db.value(
        "SELECT actor FROM events WHERE subject = ? AND type = ? ORDER BY seq DESC LIMIT 1", (subject, kind)
    )
    return None if found is None else str(found)


def last_seq(db: Database) -> int:
    """The number of the newest event."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM events"))
