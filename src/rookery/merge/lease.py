"""One merger at a time on each base. The lease has a number; whoever lost it can change nothing any more.

A holder that died is replaced at once; one that hangs, or that cannot be seen from here, after its time. Everything
that a holder does to the state or to the base happens in a transaction that first compares its number.
"""

from __future__ import annotations

from contextlib import suppress

from rookery.base import holder as holders
from rookery.base.clock import stamp
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.merge.model import LostLease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.db.database import Database
    from rookery.merge.desk import Desk


class Lease(Record):
    """The right to land on a base."""

    base: str
    token: int
    is_inherited: bool = False
    """Whoever held it before did not let go of it, and may have left something half done."""


class Holder(Record):
    """Who has it."""

    name: str
    pid: int


def acquire(desk: Desk, base: str) -> Lease | Holder:
    """The lease, or who holds it."""
    is_inherited = False
    me = holders.myself()
    with desk.db.write() as db:
        row = db.one("SELECT token, holder, pid, pid_start, expires_at FROM merge_leases WHERE base = ?", (base,))
        token = 1 if row is None else int(row[0]) + 1
        if row is not None and row[1] is not None:
            _, holder, pid, start, expires = row
            # By its process it is known at once that a holder is gone, by its time that it hangs.
            if not holders.is_gone(holders.read(pid, start)) and expires > desk.now():
                return Holder(holder, pid)
            is_inherited = True
        db.execute(
            "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (base) DO UPDATE SET token = excluded.token, holder = excluded.holder, pid = excluded.pid, "
            "pid_start = excluded.pid_start, expires_at = excluded.expires_at",
            (base, token, desk.actor, me.pid, me.text, _until(desk)),
        )
    return Lease(base, token, is_inherited)


def renew(desk: Desk, lease: Lease) -> None:
    """Give a sign of life; raises LostLease if somebody has taken over."""
    with desk.db.write() as db:
        check(db, lease)
        db.execute("UPDATE merge_leases SET expires_at = ? WHERE base = ?", (_until(desk), lease.base))


def check(db: Database, lease: Lease) -> None:
    """Within the caller's transaction: raise LostLease unless the lease is still ours."""
    if db.value("SELECT token FROM merge_leases WHERE base = ? AND holder IS NOT NULL", (lease.base,)) != lease.token:
        raise LostLease(
            f"another merger has taken over {lease.base}", hint="nothing was changed; `rook merge list` shows the queue"
        )


def release(desk: Desk, lease: Lease) -> None:
    """Let others land; nothing if the lease is lost already.

    On a full disk it stays, and is free once this process has ended: the error that led here says more.
    """
    with suppress(StorageFailed), desk.db.write() as db:
        db.execute(
            "UPDATE merge_leases SET holder = NULL, pid = NULL, pid_start = NULL, expires_at = NULL "
            "WHERE base = ? AND token = ?",
            (lease.base, lease.token),
        )


def _until(desk: Desk) -> str:
    return stamp(desk.home.clock() + desk.config.merge.lease)
