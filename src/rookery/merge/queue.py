"""The queue: what is to land, in which order, and one merger at a time that works through it (`merge/run.py`)."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.db.commits import Commits
from rookery.merge import lease as leases
from rookery.merge import service, store
from rookery.merge.landing import after, land, settle
from rookery.merge.lease import Holder, Lease
from rookery.merge.merger import Merger
from rookery.merge.model import MergeBusy, Outcome
from rookery.merge.run import Run

_LOOK_AGAIN = 1.0
"""A merger that is killed tells of nothing."""


def land_branches(merger: Merger, names: Sequence[str], base: str, *, force: bool = False) -> Outcome:
    """Queue branches and land them; where no other merger is at work, the lease is taken by the same transaction."""
    planned = service.plan(merger, names, base, force=force, lands_next=True)
    seen = leases.look(merger, base)
    with merger.ctx.db.write():
        only = {each.id for each in service.insert(merger, planned)}
        taken = leases.take(merger, base, seen)
    return work(merger, base, only, None if isinstance(taken, Holder) else leases.fenced(merger, taken))


def work(merger: Merger, base: str, only: Collection[str] = (), lease: Lease | None = None) -> Outcome:
    """Land what is queued for a base, or those entries alone. Waits while somebody else is at it."""
    lease = lease or _await_lease(merger, base, only)
    if lease is None:
        return Outcome(base, tuple(store.get(merger.ctx.db, each) for each in only), 0)
    try:
        run = Run(merger, lease, only)
        run.carry_out()
        settle.complete_landed(merger, base)
    except BaseException:
        # Whatever it was, an interrupt too: what is not through goes back into the queue at once.
        with suppress(RookError):
            land.recover(merger, lease)
        raise
    finally:
        leases.release(merger, lease)
    after.tidy(merger)
    # What another process settled meanwhile was asked for as well.
    seen = dict.fromkeys((*run.seen, *only))
    return Outcome(base, tuple(store.get(merger.ctx.db, each) for each in seen), merger.gate_runs, tuple(run.flaky))


def _await_lease(merger: Merger, base: str, only: Collection[str]) -> Lease | None:
    """The lease; None if whoever held it has meanwhile settled all that is asked for."""
    deadline = time.monotonic() + merger.ctx.config.merge.wait
    with Commits(merger.ctx.db.path) as commits:
        while True:
            found = leases.acquire(merger, base)
            if not isinstance(found, Holder):
                return found
            if only and not any(store.get(merger.ctx.db, each).is_open for each in only):
                return None
            if not only or time.monotonic() > deadline:
                raise MergeBusy(f"{found.name} (process {found.pid}) lands on {base} just now")
            commits.wait(_LOOK_AGAIN)
