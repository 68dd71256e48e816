"""The queue: what will land, in which order, and one merger at a time that works through it (`merge/run.py`)."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.db.commits import Commits
from rookery.mail import store as messages
from rookery.merge import lease as leases
from rookery.merge import service, store, undo
from rookery.merge.landing import cleanup, completion, land, rebase_requests
from rookery.merge.landing.eligibility import survey
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import FAILED, WAITING, Entry, MergeBusy, Outcome
from rookery.merge.person import closing, handback
from rookery.merge.run import Run
from rookery.sessions import store as agents
from rookery.tasks.scope import outside as scopes

_LOOK_AGAIN = 1.0
"""After how many seconds to look again: a killed merger makes no commit that would wake us."""
_LAST_TURN = 20.0
"""How long an agent that has said that it is done may take to end its turn."""


def land_branch(
    merger: Merger, name: str, base: str, *, force: bool = False, why_outside: str | None = None
) -> Outcome:
    """Queue a branch and land it. If no other merger holds the lease, the same transaction takes it.

    `why_outside` is the reason for what it changes outside its agent's files.
    """
    _await_hand_in(merger, merger.branch(name))
    outside = None if why_outside is None else service.explain_outside(merger, name, base, why_outside)
    draft = service.draft(merger, name, base, force=force, outside=outside)
    onto = merger.merging.tip(base)
    if onto is not None:  # git merges it while it compares it with the base: both are needed soon
        merger.merging.foresee(onto, draft.tip)
    reverted = service.find_reverted(merger, [draft])
    seen = leases.read_state(merger, base)
    with merger.ctx.db.write() as db:
        scopes.keep(db, outside, actor=merger.actor, at=merger.ctx.now())
        only = {entry.id for entry in service.insert(merger, [draft], reverted)}
        taken = leases.take(merger, base, seen)
    landed = work(merger, base, only, leases.fenced(merger, taken) if isinstance(taken, Lease) else None)
    _, resolved, _ = handback.split(merger, store.queue(merger.ctx.db, base))
    return landed.replace(resolved=tuple(entry.branch for entry, _, _ in resolved if entry.id not in only))


def _await_hand_in(merger: Merger, branch: str) -> None:
    """Wait until an agent that has said that it is done has ended, so that its task is handed in; not for long."""
    ctx = merger.ctx
    session = next(iter(agents.of_branch(ctx.db, branch)[-1:]), None)
    if session is None or not session.is_alive or session.agent == ctx.caller.name:
        return
    if messages.terminal_message(ctx.db, session) is None:
        return
    merger.say(f"waiting for {session.agent} to end its turn\n")
    deadline = time.monotonic() + _LAST_TURN
    with Commits(ctx.db.path) as commits:
        while agents.session(ctx.db, session.id).is_alive and time.monotonic() < deadline:
            ctx.react()
            commits.wait(_LOOK_AGAIN)


def land_finished(merger: Merger, base: str) -> Outcome:
    """Queue every branch whose work is finished, and land them with what is queued already."""
    closing.pick_up(merger, base)
    surveyed = survey(merger, base)
    only = {entry.id for entry in (*surveyed.queued, *service.enqueue(merger, surveyed.ready, base))}
    if only:
        return work(merger, base, only).replace(skipped=surveyed.skipped)
    return Outcome(base, (), 0, skipped=surveyed.skipped)


def work(merger: Merger, base: str, only: Collection[str] = (), lease: Lease | None = None) -> Outcome:
    """Land what is queued for a base, or those entries alone. Waits while another merger works on it."""
    lease = lease or _await_lease(merger, base, only)
    if lease is None:
        return Outcome(base, tuple(store.get(merger.ctx.db, merge_id) for merge_id in only), 0)
    try:
        run = Run(merger, lease, only)
        run.carry_out()
        completion.complete_landed(merger, base)
    except BaseException as error:
        # Whatever it was, an interrupt too: what has not landed goes back into the queue at once.
        with suppress(RookError):
            land.recover(merger, lease)
        if isinstance(error, KeyboardInterrupt):
            merger.say(f"Interrupted. What has not landed stays queued: `rook merge run{merger.into(base)}` goes on.\n")
        raise
    finally:
        leases.release(merger, lease)
    cleanup.tidy(merger)
    closing.tidy(merger)
    # The result also names what another process has settled meanwhile.
    entries = tuple(store.get(merger.ctx.db, merge_id) for merge_id in dict.fromkeys((*run.progress.seen, *only)))
    failed_gates = tuple(run.progress.failed_gates[entry.id] for entry in entries if _is_kept_by_gate(entry, run))
    return Outcome(base, entries, merger.gate_runs, tuple(run.gating.flaky), failed_gates=failed_gates)


def _is_kept_by_gate(entry: Entry, run: Run) -> bool:
    return entry.id in run.progress.failed_gates and entry.state in (FAILED, WAITING)


def _await_lease(merger: Merger, base: str, only: Collection[str]) -> Lease | None:
    """The lease; None if its holder has meanwhile settled all that is asked for."""
    deadline = time.monotonic() + merger.ctx.config.merge.wait
    with Commits(merger.ctx.db.path) as commits:
        while True:
            lease = leases.acquire(merger, base)
            if isinstance(lease, Lease):
                return lease
            if only and not any(store.get(merger.ctx.db, merge_id).is_open for merge_id in only):
                return None
            if not only or time.monotonic() > deadline:
                raise MergeBusy(f"{lease.actor} (process {lease.process.pid}) lands on {base} just now")
            commits.wait(_LOOK_AGAIN)


def recover(merger: Merger, base: str) -> None:
    """Finish or put back what a killed merger left on a base; nothing where a merger is at work."""
    lease = leases.acquire(merger, base)
    if not isinstance(lease, Lease):
        return
    try:
        land.recover(merger, lease)
        undo.recover(merger, lease)
        rebase_requests.follow_up(merger, base)
    finally:
        leases.release(merger, lease)
    cleanup.tidy(merger)
    closing.tidy(merger)
