"""One merger at a time on each base. The lease has a number; a merger that lost its lease can change nothing any more.

A holder that died is replaced at once; one that hangs, or that cannot be seen from here, when its time is over.
A holder writes only in transactions that first compare its number, and git moves the base only if the base's fence is
as the holder knows it (`vcs/git/moves.py`). A merger that takes a lease over gives the fence a new value first.

A value of the fence counts if the lease was still ours after it had been read: a later holder changes the fence, and an
earlier one cannot write it any more, because it has to check the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rookery.base import call as calls
from rookery.base.clock import stamp
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.config import steps
from rookery.db.database import Database
from rookery.mail.model import SYSTEM
from rookery.merge import lease_store
from rookery.merge.lease_store import LeaseRow
from rookery.merge.merger import Merger
from rookery.merge.model import LostLease
from rookery.processes import holder as holders
from rookery.vcs.git import moves as git_moves
from rookery.vcs.git.moves import Fenced

_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Lease(Record):
    """The right to land on a base."""

    base: str
    token: int
    is_inherited: bool = False
    """Its last holder did not release it, and may have left something half done."""
    fence: str = ""
    """The value that the base's fence in git has while the lease is ours."""


@dataclass(frozen=True, slots=True)
class LeaseState(Record):
    """What is known, before the transaction that takes a lease, of the process that asks and of the holder."""

    me: holders.HolderId
    row: LeaseRow | None = None
    """The lease as it is; None if it was never taken."""
    is_gone: bool = False
    """Whether the process of its holder has ended."""


def acquire(merger: Merger, base: str) -> Lease | LeaseRow:
    """The lease, or the row that says who holds it. Waits while the loop tidies up after a killed merger."""
    deadline = time.monotonic() + merger.ctx.config.merge.wait
    while True:
        seen = read_state(merger, base)
        # A merger that waits for the lease wakes up at every commit, so it must not make one itself.
        taken = _holder(merger, seen.row, seen) or take(merger, base, seen)
        if isinstance(taken, Lease):
            return fenced(merger, taken)
        if taken.actor != SYSTEM or merger.actor == SYSTEM or time.monotonic() >= deadline:
            return taken
        calls.sleep(_POLL)


def read_state(merger: Merger, base: str) -> LeaseState:
    """Look at the processes that matter for a lease: that takes too long for a transaction."""
    row = lease_store.find(merger.ctx.db, base)
    is_gone = row is not None and row.actor is not None and holders.is_gone(row.process)
    return LeaseState(holders.myself(), row, is_gone)


def take(merger: Merger, base: str, seen: LeaseState) -> Lease | LeaseRow:
    """Take the lease by its row alone, perhaps within the caller's transaction; `fenced` makes it good for landing."""
    with merger.ctx.db.write() as db:
        row = lease_store.find(db, base)
        holder = _holder(merger, row, seen)
        if holder is not None:
            return holder
        token = 1 if row is None else row.token + 1
        lease_store.save(db, LeaseRow(base, token, merger.actor, seen.me, _until(merger)))
    lease = Lease(base, token, is_inherited=row is not None and row.actor is not None)
    merger.beat = Renewal(merger, lease)
    return lease


def _holder(merger: Merger, row: LeaseRow | None, seen: LeaseState) -> LeaseRow | None:
    """The lease if its holder is neither gone nor hangs."""
    if row is None or row.actor is None:
        return None
    # The process of a holder says at once that it is gone, its time that it hangs. A holder that has taken the lease
    # since we looked is alive.
    is_gone = seen.is_gone and seen.row is not None and seen.row.token == row.token
    return None if is_gone or row.expires_at <= merger.ctx.now() else row


def fenced(merger: Merger, lease: Lease) -> Lease:
    """The lease with the value of the base's fence: a new one if another holder may still be at work.

    Raises LostLease if another merger has taken over. If git fails, the lease stays taken: the next holder inherits it,
    and so knows that the fence has to change.
    """
    try:
        steps.reached("lease taken")
        while True:
            seen = git_moves.read_fence(merger.merging.store, lease.base)
            check(merger.ctx.db, lease)
            if not lease.is_inherited:
                return lease.replace(fence=seen)
            me = holders.myself()
            text = f"{lease.base}\n{lease.token}\n{merger.ctx.now()}\n{me.pid} {me.text}\n{os.urandom(8).hex()}\n"
            with suppress(Fenced):  # another process was faster: an earlier holder, or the lease is lost
                fence = git_moves.write_fence(merger.merging.store, lease.base, text, seen)
                steps.reached("lease fenced")
                return lease.replace(fence=fence)
    except BaseException:
        if not lease.is_inherited:  # no earlier holder has to be kept out, and the next need not wait for our end
            release(merger, lease)
        raise


class Renewal:
    """Extends a lease when it is time to; call it as often as you like. Raises LostLease."""

    def __init__(self, merger: Merger, lease: Lease) -> None:
        self._merger = merger
        self._lease = lease
        self._renewed = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._renewed > self._merger.ctx.config.merge.lease / 4:
            renew(self._merger, self._lease)
            self._renewed = time.monotonic()


def renew(merger: Merger, lease: Lease) -> None:
    """Extend the lease; raises LostLease if another merger has taken over."""
    with writing(merger, lease) as db:
        lease_store.extend(db, lease.base, _until(merger))


@contextmanager
def writing(merger: Merger, lease: Lease) -> Iterator[Database]:
    """A transaction that begins only while the lease is ours; raises LostLease."""
    with merger.ctx.db.write() as db:
        check(db, lease)
        yield db


def check(db: Database, lease: Lease) -> None:
    """Within the caller's transaction: raise LostLease unless the lease is still ours."""
    row = lease_store.find(db, lease.base)
    if row is None or row.actor is None or row.token != lease.token:
        raise lost(lease.base)


def lost(base: str) -> LostLease:
    """Another merger has taken over a base."""
    return LostLease(
        f"another merger has taken over {base}", hint="nothing was changed; `rook merge list` shows the queue"
    )


def release(merger: Merger, lease: Lease) -> None:
    """Let others land; nothing if the lease is lost already.

    On a full disk it stays taken until this process has ended: the error that led here says more.
    """
    merger.beat = lambda: None
    with suppress(StorageFailed), merger.ctx.db.write() as db:
        lease_store.free(db, lease.base, lease.token)


def _until(merger: Merger) -> str:
    return stamp(merger.ctx.clock() + merger.ctx.config.merge.lease)
