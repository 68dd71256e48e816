"""The step that happens as a whole or not at all: the base moves, and everything that follows from it is recorded.

What is about to happen is recorded first. Then the files of the base's checkouts change, then the base by
compare-and-set: in one transaction of git's that also keeps the commits and fails if the lease was lost. Then the rows
follow, and the indexes. After a kill, `recover` asks git whether the base has moved, and finishes the rest or puts the
entries back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rookery.base.errors import InvalidState, ProgramFailed, StorageFailed
from rookery.base.record import Record
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.gates import scratch
from rookery.merge.landing import cleanup, completion, messages, rebase_requests
from rookery.merge.landing.candidate import Candidate
from rookery.merge.landing.completion import Surroundings
from rookery.merge.landing.eligibility import Withdrawn, why_refused
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import LANDING, QUEUED, TESTING, WAITING, Entry
from rookery.ops.state_owner import keep_answer, last_answer
from rookery.vcs.git import forward as git_forward
from rookery.vcs.git.forward import Forward, InTheWay
from rookery.vcs.git.in_progress import BranchInUse
from rookery.vcs.git.moves import Fenced
from rookery.vcs.ref_names import LANDINGS


@dataclass(frozen=True, slots=True)
class Held(Record):
    """A landing that has to wait for a person: a checkout has files that block it or is busy, or a hook refuses, or git
    has begun something with the base.
    """

    reason: str
    paths: tuple[str, ...] = ()


def in_use(error: BranchInUse) -> Held:
    """A landing that waits until a rebase or the like has ended: aborted, that would drop what landed meanwhile."""
    return Held(f"{error.message}; {error.hint}, then `rook merge run` lands this")


def land(merger: Merger, lease: Lease, stack: Sequence[Candidate]) -> list[Entry] | Held:
    """Move the base to the last of a stack of candidates, and record every one as landed; all, or none.

    Raises RefMoved if another process has moved the base, so that the candidates are out of date.
    """
    old, new = stack[0].onto, stack[-1].commit
    entries = _announce(merger, lease, stack)
    steps.reached("landing recorded")
    try:
        begun = merger.merging.begin_forward(lease.base, old, new)
    except InTheWay as error:
        return Held(error.message, error.paths)
    except BranchInUse as error:
        return in_use(error)
    except InvalidState as error:
        return Held(error.message)  # another git is at work in a checkout, or its files cannot be written
    try:
        with checkouts_following(merger, lease.base, new, begun, keeps_answer=True):
            steps.reached("checkouts forwarded")
            _move(merger, lease, entries, old, new)
            around = completion.look_around(merger, entries)
            with leases.writing(merger, lease):  # if the lease was lost just now, its new holder records this
                now = merger.ctx.now()
                landed = [record_landed(merger, entry, now, around) for entry in entries]
            steps.reached("landing written")
    except BranchInUse as error:  # it has begun since
        return in_use(error)
    except ProgramFailed as error:
        if merger.merging.tip(lease.base) == new:
            raise
        return Held(error.message)  # a hook of the user's refuses it
    steps.reached("indexes follow")
    merger.merging.settle()
    return landed


@contextmanager
def checkouts_following(
    merger: Merger, base: str, new: str, begun: Sequence[Forward], *, keeps_answer: bool = False
) -> Iterator[None]:
    """The block moves a branch whose checkouts have the new files already, and records that.

    Then the indexes follow; if the branch has not moved, the files are put back. Also on an interrupt: once the lease
    is free, no later command would look for it. `keeps_answer`: if the project's index had nothing of Rookery's state,
    it has nothing of it then either, since no candidate may bring that.
    """
    root = merger.ctx.root
    try:
        answer = last_answer(root) if keeps_answer else None  # while the index is locked
        yield
    except BaseException as error:
        has_moved = merger.merging.tip(base) == new
        git_forward.end(begun, has_moved=has_moved)
        if isinstance(error, Fenced):
            raise leases.lost(base) from None
        if isinstance(error, StorageFailed) and has_moved:
            raise StorageFailed(
                f"{base} is now at {new[:12]}, but that could not be recorded: {error.message}",
                hint="make room on the disk, or remove what stops the database; the next `rook` command records it",
                code=error.code,
            ) from error
        raise
    for forward in begun:
        if answer is not None and forward.folder == os.path.realpath(root):
            forward.finish(while_locked=partial(keep_answer, root, answer, forward.own_index))
        else:
            forward.finish()


def _announce(merger: Merger, lease: Lease, stack: Sequence[Candidate]) -> list[Entry]:
    """Record what is about to land; raises Withdrawn if one of the entries may not land any more."""
    strategy = merger.ctx.config.merge.strategy
    entries = []
    with leases.writing(merger, lease) as db:
        for candidate in stack:
            entry = store.get(db, candidate.entry.id)
            is_withdrawn = entry.state not in (QUEUED, WAITING, TESTING)
            reason = "it was taken out of the queue" if is_withdrawn else why_refused(db, entry)
            if reason:
                hint = "`rook merge list --all` shows what became of it"
                raise Withdrawn(f"{entry.branch} may not land: {reason}", hint=hint)
            if entry.state != TESTING:
                entry = merger.change(entry, "take", tip=candidate.entry.tip, outside=candidate.entry.outside)
            changes = {"candidate": candidate.commit, "base_before": candidate.onto, "tier": candidate.tier}
            entries.append(merger.change(entry, "go ahead", strategy=strategy, **changes))
    return entries


def _move(merger: Merger, lease: Lease, entries: Sequence[Entry], old: str, new: str) -> None:
    leases.check(merger.ctx.db, lease)
    steps.reached("lease checked")
    why = f"land {', '.join(entry.branch for entry in entries)}"
    commits = {LANDINGS + entry.id: str(entry.candidate) for entry in entries}
    merger.merging.move(lease.base, new, old, why, fence=lease.fence, kept=commits)
    steps.reached("base moved")


def record_landed(merger: Merger, entry: Entry, now: str, around: Surroundings) -> Entry:
    """Within a transaction: git says that the base contains the candidate. What landed at once has one time."""
    remark = completion.complete_task(merger, entry, around)
    changes = {"landed_at": now, "kind": None, "reason": remark or None, "files": (), "log": None}
    landed = store.change(merger.ctx.db, entry, "land", actor=merger.actor, at=now, **changes)
    messages.tell_landed(merger, landed)
    # Most work concerns no other agent and leaves nothing to clean: then no later step has to look.
    if not rebase_requests.may_be_needed(merger):
        store.mark_followed(merger.ctx.db, [landed], now)
    if not cleanup.has_worktree(merger, landed):
        store.mark_cleaned(merger.ctx.db, landed, now)
    return landed


def recover(merger: Merger, lease: Lease) -> list[Entry]:
    """Settle what a killed merger left on this base; entries that had not landed go back into the queue."""
    # A checkout that could not be settled at once may be all that is left.
    has_settled = merger.merging.repair_checkouts(lease.base)
    left = store.select(merger.ctx.db, states=(TESTING, LANDING), base=lease.base)
    if not left and not lease.is_inherited and not has_settled:
        return []
    tip = merger.merging.tip(lease.base)
    settled = []
    for entry in left:
        is_announced = entry.state == LANDING and tip is not None
        has_landed = is_announced and merger.merging.store.contains(str(entry.candidate), str(tip))
        around = completion.look_around(merger, [entry] if has_landed else [])
        with leases.writing(merger, lease):
            if has_landed:
                settled.append(record_landed(merger, entry, merger.ctx.now(), around))
            else:
                settled.append(merger.change(entry, "put back"))
        steps.reached("recovered one")
    scratch.sweep(merger)
    merger.merging.settle()
    return settled
