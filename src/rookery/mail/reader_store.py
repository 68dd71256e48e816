"""The tables of a person's own agent sessions, and of what each has been shown of the person's mail.

A message that such a session was shown is not read: the person has not seen it. New for a session is what came since
its first contact, and what the person had not read by then.
"""

from __future__ import annotations

from rookery.db.database import Database
from rookery.db.dialect import equals, in_chunks
from rookery.mail.model import HUMAN
from rookery.mail.store import URGENT_FIRST

_NOT_SHOWN = "NOT EXISTS (SELECT 1 FROM mail_readings g WHERE g.reader = ? AND g.seq = m.seq)"
_NEWEST = f"SELECT coalesce(max(m.seq), 0) FROM messages m WHERE m.recipient = '{HUMAN}'"


def last_contact(db: Database, reader: str) -> str | None:
    """When a session was last seen to ask for mail; None if it never was, or was forgotten."""
    seen_at: str | None = db.value("SELECT seen_at FROM mail_readers WHERE reader = ?", (reader,))
    return seen_at


def keep_contact(db: Database, reader: str, now: str) -> None:
    """A session asks for mail: from its first time on, what comes is new for it."""
    newest = int(db.value(_NEWEST))
    db.execute(
        "INSERT INTO mail_readers (reader, backlog, upto, seen_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (reader) DO UPDATE SET seen_at = excluded.seen_at",
        (reader, newest, newest, now),
    )


def forget_old(db: Database, *, before: str, most: int) -> None:
    """Delete the sessions that were last seen before a time, and all but the newest of the others."""
    db.execute(
        "DELETE FROM mail_readers WHERE seen_at < ? OR reader NOT IN "
        "(SELECT reader FROM mail_readers ORDER BY seen_at DESC, reader LIMIT ?)",
        (before, most),
    )


def new_ids(db: Database, reader: str, limit: int = -1, **wanted: str | None) -> list[str]:
    """What is new for a session, with these values in its columns: urgent first, and of those the newest."""
    rows, values = _new(db, reader, wanted)
    sql = f"SELECT m.id FROM ({rows}) m ORDER BY {URGENT_FIRST}, m.seq DESC LIMIT ?"
    return [row[0] for row in db.all(sql, (*values, limit))]


def count_new(db: Database, reader: str) -> int:
    """How many messages are new for a session."""
    rows, values = _new(db, reader, {})
    return int(db.value(f"SELECT count(*) FROM ({rows})", values))


def mark(db: Database, reader: str, ids: list[str]) -> None:
    """A session was shown these messages. When nothing is new any more, one number says so."""
    shown = in_chunks(db, "SELECT seq FROM messages WHERE id IN (%s)", ids)
    db.execute_many(
        "INSERT INTO mail_readings (reader, seq) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(reader, row[0]) for row in shown],
    )
    if not new_ids(db, reader, 1):
        db.execute("DELETE FROM mail_readings WHERE reader = ?", (reader,))
        db.execute("UPDATE mail_readers SET backlog = 0, upto = ? WHERE reader = ?", (int(db.value(_NEWEST)), reader))


def _new(db: Database, reader: str, wanted: dict[str, str | None]) -> tuple[str, list[object]]:
    """The query for the messages that are new for a session, and its values. Each half has an index."""
    row = db.one("SELECT backlog, upto FROM mail_readers WHERE reader = ?", (reader,))
    backlog, upto = row if row is not None else (int(db.value(_NEWEST)),) * 2
    where, values = equals({f"m.{column}": value for column, value in wanted.items()})
    condition = " AND ".join([f"m.recipient = '{HUMAN}'", _NOT_SHOWN, *where])
    half = f"SELECT m.id, m.seq, m.priority FROM messages m WHERE {condition}"
    rows = f"{half} AND m.seq > ? UNION ALL {half} AND m.read_at IS NULL AND m.seq <= ?"
    return rows, [reader, *values, upto, reader, *values, backlog]
