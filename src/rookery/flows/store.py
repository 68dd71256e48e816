"""The table of actions that failed."""

from __future__ import annotations

from rookery.db.database import Database
from rookery.flows.model import Failure


def failures(db: Database) -> dict[str, Failure]:
    """Every action whose last try failed, by its key."""
    rows = db.all("SELECT key, count, next_at, error, at, seen FROM loop_failures")
    return {row[0]: Failure(*row) for row in rows}


def record(db: Database, failure: Failure) -> None:
    """Keep a failure, instead of an earlier one of the same action."""
    db.execute(
        "INSERT INTO loop_failures (key, count, next_at, error, at, seen) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET count = excluded.count, next_at = excluded.next_at, error = excluded.error, "
        "at = excluded.at, seen = excluded.seen",
        failure.as_tuple(),
    )


def forget(db: Database, key: str) -> None:
    """The action has succeeded, or is no longer wanted."""
    db.execute("DELETE FROM loop_failures WHERE key = ?", (key,))
