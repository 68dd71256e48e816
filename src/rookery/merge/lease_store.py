"""The table of leases. A released lease keeps its row, because its number must never come again."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import seconds_of, stamp
from rookery.base.record import Record
from rookery.db.database import Database, Row
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId

_SELECT = "SELECT base, token, holder, pid, pid_start, expires_at FROM merge_leases"


@dataclass(frozen=True, slots=True)
class LeaseRow(Record):
    """A base that was landed on, and who holds its lease."""

    base: str
    token: int
    actor: str | None
    """Who holds it; None if it is free."""
    process: HolderId
    expires_at: str


def find(db: Database, base: str) -> LeaseRow | None:
    """The lease of a base, held or not; None before the first landing."""
    row = db.one(f"{_SELECT} WHERE base = ?", (base,))
    return None if row is None else _lease(row)


def held(db: Database) -> list[LeaseRow]:
    """Every lease that is held, its time over or not."""
    return [_lease(row) for row in db.all(f"{_SELECT} WHERE holder IS NOT NULL")]


def bases_at_work(db: Database, now: str) -> set[str]:
    """The bases on which a merger is at work."""
    return {
        lease.base for lease in held(db) if not holders.is_gone(lease.process, lease_is_over=lease.expires_at <= now)
    }


def save(db: Database, lease: LeaseRow) -> None:
    """Give a base's lease to a holder."""
    db.execute(
        "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (base) DO UPDATE SET token = excluded.token, holder = excluded.holder, pid = excluded.pid, "
        "pid_start = excluded.pid_start, expires_at = excluded.expires_at",
        (lease.base, lease.token, lease.actor, lease.process.pid, lease.process.text, lease.expires_at),
    )


def extend(db: Database, base: str, expires_at: str) -> None:
    """Set another time at which a lease is over."""
    db.execute("UPDATE merge_leases SET expires_at = ? WHERE base = ?", (expires_at, base))


def free(db: Database, base: str, token: int) -> None:
    """Release a lease; nothing if it has another number."""
    db.execute(
        "UPDATE merge_leases SET holder = NULL, pid = NULL, pid_start = NULL, expires_at = NULL "
        "WHERE base = ? AND token = ?",
        (base, token),
    )


def drop_all(db: Database, now: str) -> None:
    """End every lease, in a copy of the project whose mergers hold them elsewhere.

    The next merger inherits them, and settles what was half done when the copy was made.
    """
    db.execute("UPDATE merge_leases SET pid = 0, pid_start = '', expires_at = ? WHERE holder IS NOT NULL", (now,))


def _lease(row: Row) -> LeaseRow:
    base, token, actor, pid, start, expires = row
    return LeaseRow(base, token, actor, holders.read(pid or 0, start), expires or "")


def set_back(db: Database, seconds: float) -> None:
    """Let every lease that is held be over so many seconds earlier."""
    for lease in held(db):
        extend(db, lease.base, stamp(seconds_of(lease.expires_at) - seconds))
