"""The outbox's table."""

from __future__ import annotations

from rookery.base.ids import EVENT, new_id
from rookery.base.json import dumps, loads
from rookery.events.model import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.db.database import Database


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
    since: str | None = None,
    kinds: tuple[str, ...] = (),
    actor: str | None = None,
    limit: int = -1,
    newest: bool = False,
) -> list[Event]:
    """Events in the order of their commits; with `newest`, the last `limit` of them."""
    where, values = ["seq > ?"], [after]  # type: tuple[list[str], list[object]]
    if since is not None:
        where.append("at >= ?")
        values.append(since)
    if kinds:
        where.append("(" + " OR ".join("type = ? OR type GLOB ?" for _ in kinds) + ")")
        values += [text for kind in kinds for text in (kind, f"{kind}.*")]
    if actor is not None:
        where.append("actor = ?")
        values.append(actor)
    order = "DESC" if newest else "ASC"
    rows = db.all(
        f"SELECT seq, id, at, type, actor, subject, data FROM events WHERE {' AND '.join(where)} "
        f"ORDER BY seq {order} LIMIT ?",
        [*values, limit],
    )
    events = [Event(seq, id_, at, kind, by, subject, loads(data)) for seq, id_, at, kind, by, subject, data in rows]
    return events[::-1] if newest else events


def last_seq(db: Database) -> int:
    """The number of the newest event."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM events"))
