"""The queue: what is to land, in which order, and one merger at a time that works through it (`merge/run.py`)."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.db.commits import Commits
from rookery.merge import lease as leases
from rookery.merge import service, store
from rookery.merge.desk import Desk
from rookery.merge.landing import after, land, settle
from rookery.merge.lease import Holder, Lease
from rookery.merge.model import MergeBusy, Outcome
from rookery.merge.run import Run

_LOOK_AGAIN = 1.0
"""A merger that is killed tells of nothing."""


def land_branches(desk: Desk, names: Sequence[str], base: str, *, force: bool = False) -> Outcome:
    """Queue branches and land them; where no other merger is at work, the lease is taken by the same transaction."""
    planned = service.plan(desk, names, base, force=force, lands_next=True)
    seen = leases.look(desk, base)
    with desk.db.write():
        only = {each.id for each in service.insert(desk, planned)}
        taken = leases.take(desk, base, seen)
    return work(desk, base, only, None if isinstance(taken, Holder) else leases.fenced(desk, taken))


def work(desk: Desk, base: str, only: Collection[str] = (), lease: Lease | None = None) -> Outcome:
    """Land what is queued for a base, or those entries alone. Waits while somebody else is at it."""
    lease = lease or _await_lease(desk, base, only)
    if lease is None:
        return Outcome(base, tuple(store.get(desk.db, each) for each in only), 0)
    try:
        run = Run(desk, lease, only)
        run.carry_out()
        settle.complete_landed(desk, base)
    except BaseException:
        # Whatever it was, an interrupt too: what is not through goes back into the queue at once.
        with suppress(RookError):
            land.recover(desk, lease)
        raise
    finally:
        leases.release(desk, lease)
    after.tidy(desk)
    # What another process settled meanwhile was asked for as well.
    seen = dict.fromkeys((*run.seen, *only))
    return Outcome(base, tuple(store.get(desk.db, each) for each in seen), desk.gate_runs, tuple(run.flaky))


def _await_lease(desk: Desk, base: str, only: Collection[str]) -> Lease | None:
    """The lease; None if whoever held it has meanwhile settled all that is asked for."""
    deadline = time.monotonic() + desk.config.merge.wait
    with Commits(desk.db.path) as commits:
        while True:
            found = leases.acquire(desk, base)
            if not isinstance(found, Holder):
                return found
            if only and not any(store.get(desk.db, each).is_open for each in only):
                return None
            if not only or time.monotonic() > deadline:
                raise MergeBusy(f"{found.name} (process {found.pid}) lands on {base} just now")
            commits.wait(_LOOK_AGAIN)
