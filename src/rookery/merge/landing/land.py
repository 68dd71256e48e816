"""The step that cannot be taken by halves: the base moves, and everything that follows from it is written down.

What is about to happen is recorded first. Then the files of the base's checkouts change, then the base by
compare-and-set: in one transaction of git's that also keeps the commits and fails if the lease was lost. Then the rows
follow, and the indexes. Killed anywhere, `recover` finds out from git whether the base has moved, and finishes or takes
back the rest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rookery.base.errors import InvalidState, ProgramFailed, StorageFailed
from rookery.base.record import Record
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.gates import scratch
from rookery.merge.landing import after, news, settle
from rookery.merge.landing.attempts import Withdrawn, check_current
from rookery.merge.landing.candidate import Candidate
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import LANDING, QUEUED, TESTING, WAITING, Entry
from rookery.ops.state_owner import keep_answer, last_answer
from rookery.vcs.git import forward as git_forward
from rookery.vcs.git.forward import Forward, InTheWay
from rookery.vcs.git.moves import Fenced
from rookery.vcs.model import RefMoved
from rookery.vcs.ref_names import LANDINGS


@dataclass(frozen=True, slots=True)
class Held(Record):
    """A landing that has to wait for a person: a checkout has files in the way or is busy, or a hook refuses."""

    reason: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moved(Record):
    """Somebody else moved the base, so the candidate is out of date."""


def land(merger: Merger, lease: Lease, stack: Sequence[Candidate]) -> list[Entry] | Held | Moved:
    """Move the base to the last of a stack of candidates, and record every one as landed; all, or none."""
    old, new = stack[0].onto, stack[-1].commit
    entries = _announce(merger, lease, stack)
    steps.reached("landing recorded")
    try:
        begun = merger.merging.begin_forward(lease.base, old, new)
    except InTheWay as error:
        return Held(error.message, error.paths)
    except InvalidState as error:
        return Held(error.message, ())  # another git is at work in a checkout, or its files cannot be written
    answer = last_answer(merger.ctx.root)  # while the index is locked
    steps.reached("checkouts forwarded")
    try:
        _move(merger, lease, entries, old, new)
        landed = _record(merger, lease, entries)
    except BaseException as error:
        has_moved = not isinstance(error, RefMoved | Fenced) and merger.merging.tip(lease.base) == new
        git_forward.end(begun, has_moved=has_moved)
        if isinstance(error, RefMoved):
            return Moved()
        if isinstance(error, Fenced):
            raise leases.lost(lease) from None
        if isinstance(error, ProgramFailed) and not has_moved:
            return Held(error.message, ())  # a hook of the user's has something against it
        if isinstance(error, StorageFailed) and has_moved:
            raise unrecorded(error, lease.base, new) from error
        raise
    try:
        steps.reached("landing written")
    finally:  # also when interrupted: with the lease let go, no later command would look for this
        _finish(begun, merger.ctx.root, answer)
    steps.reached("indexes follow")
    merger.merging.settle()
    return landed


def _announce(merger: Merger, lease: Lease, stack: Sequence[Candidate]) -> list[Entry]:
    strategy = merger.ctx.config.merge.strategy
    with leases.writing(merger, lease) as db:
        entries = [store.get(db, each.entry.id) for each in stack]
        check_current(db, entries)
        return [
            merger.change(
                _taken(merger, entry, each.entry.tip),
                "go ahead",
                **{"candidate": each.commit, "base_before": each.onto, "tier": each.tier, "strategy": strategy},
            )
            for entry, each in zip(entries, stack, strict=True)
        ]


def _taken(merger: Merger, entry: Entry, tip: str) -> Entry:
    """The entry, taken from the queue unless it was before; raises Withdrawn if it is not there any more."""
    if entry.state == TESTING:
        return entry
    if entry.state not in (QUEUED, WAITING):
        raise Withdrawn(f"{entry.branch} was taken out of the queue", hint="`rook merge list --all` shows it")
    return merger.change(entry, "take", tip=tip)


def _move(merger: Merger, lease: Lease, entries: Sequence[Entry], old: str, new: str) -> None:
    leases.check(merger.ctx.db, lease)
    steps.reached("lease checked")
    why = f"land {', '.join(each.branch for each in entries)}"
    commits = {LANDINGS + each.id: str(each.candidate) for each in entries}
    merger.merging.move(lease.base, new, old, why, fence=lease.fence, kept=commits)
    steps.reached("base moved")


def _record(merger: Merger, lease: Lease, entries: Sequence[Entry]) -> list[Entry]:
    """The base has moved. If the lease was lost just after that, its new holder writes this down."""
    with leases.writing(merger, lease):
        now = merger.ctx.now()
        return [record_landed(merger, each, now) for each in entries]


def unrecorded(error: StorageFailed, base: str, commit: str) -> StorageFailed:
    """Git has moved the base, and the database could not be told."""
    return StorageFailed(
        f"{base} is now at {commit[:12]}, but that could not be recorded: {error.message}",
        hint="make room on the disk, or remove what else stops the database; the next `rook` command records it",
        code=error.code,
    )


def record_landed(merger: Merger, entry: Entry, now: str) -> Entry:
    """Within a transaction: the base contains the candidate, as git says. What landed at once has one time."""
    note = settle.complete_task(merger, entry)
    changes = {"landed_at": now, "kind": None, "reason": note or None, "files": ()}
    landed = store.change(merger.ctx.db, entry, "land", actor=merger.actor, at=now, **changes)
    news.tell_landed(merger, landed)
    after.mark_settled(merger, landed, now)
    return landed


def _finish(begun: Sequence[Forward], root: str, answer: bytes | None) -> None:
    """Let the indexes follow. If the project's own had nothing of the state in it, it has nothing of it now: the
    candidate brings nothing of that (`protected`), so the next command need not ask git.
    """
    for each in begun:
        if answer is not None and each.folder == os.path.realpath(root):
            each.finish(while_locked=partial(keep_answer, root, answer, each.own_index))
        else:
            each.finish()


def recover(merger: Merger, lease: Lease) -> list[Entry]:
    """Settle what a killed merger left on this base; what was not through goes back into the queue."""
    # A checkout that could not be settled at once may be all that is left.
    has_settled = merger.merging.repair_checkouts(lease.base)
    left = store.select(merger.ctx.db, states=(TESTING, LANDING), base=lease.base)
    if not left and not lease.is_inherited and not has_settled:
        return []
    tip = merger.merging.tip(lease.base)
    settled = []
    for entry in left:
        through = (
            entry.state == LANDING
            and entry.candidate is not None
            and tip is not None
            and merger.merging.store.contains(entry.candidate, tip)
        )
        with leases.writing(merger, lease):
            if through:
                settled.append(record_landed(merger, entry, merger.ctx.now()))
            else:
                settled.append(merger.change(entry, "put back"))
        steps.reached("recovered one")
    scratch.sweep(merger)
    merger.merging.settle()
    return settled
