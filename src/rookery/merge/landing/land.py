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
from rookery.merge.desk import Desk
from rookery.merge.gates import scratch
from rookery.merge.landing import after, kept, news, settle
from rookery.merge.landing.attempts import Withdrawn, check_current
from rookery.merge.landing.candidate import Candidate
from rookery.merge.lease import Lease
from rookery.merge.model import LANDING, QUEUED, TESTING, WAITING, Entry
from rookery.ops.state import keep_answer, last_answer
from rookery.vcs.git.forward import Forward, InTheWay
from rookery.vcs.git.moves import Fenced
from rookery.vcs.model import RefMoved


@dataclass(frozen=True, slots=True)
class Held(Record):
    """A landing that has to wait for a person: a checkout has files in the way or is busy, or a hook refuses."""

    reason: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moved(Record):
    """Somebody else moved the base, so the candidate is out of date."""


def land(desk: Desk, lease: Lease, stack: Sequence[Candidate]) -> list[Entry] | Held | Moved:
    """Move the base to the last of a stack of candidates, and record every one as landed; all, or none."""
    old, new = stack[0].onto, stack[-1].commit
    entries = _announce(desk, lease, stack)
    steps.reached("landing recorded")
    try:
        begun = desk.merging.begin_forward(lease.base, old, new)
    except InTheWay as error:
        return Held(error.message, error.paths)
    except InvalidState as error:
        return Held(error.message, ())  # another git is at work in a checkout, or its files cannot be written
    answer = last_answer(desk.home.root)  # while the index is locked
    steps.reached("checkouts forwarded")
    try:
        _move(desk, lease, entries, old, new)
        landed = _record(desk, lease, entries)
    except RefMoved:
        _end_forward(begun, has_moved=False)
        return Moved()
    except Fenced:
        _end_forward(begun, has_moved=False)
        raise leases.lost(lease) from None
    except ProgramFailed as error:
        has_moved = desk.merging.tip(lease.base) == new
        _end_forward(begun, has_moved=has_moved)
        if has_moved:
            raise
        return Held(error.message, ())  # a hook of the user's has something against it
    except StorageFailed as error:
        has_moved = desk.merging.tip(lease.base) == new
        _end_forward(begun, has_moved=has_moved)
        raise (unrecorded(error, lease.base, new) if has_moved else error) from error
    except BaseException:
        _end_forward(begun, has_moved=desk.merging.tip(lease.base) == new)
        raise
    try:
        steps.reached("landing written")
    finally:  # also when interrupted: with the lease let go, no later command would look for this
        _finish(begun, desk.home.root, answer)
    steps.reached("indexes follow")
    desk.merging.settle()
    return landed


def _announce(desk: Desk, lease: Lease, stack: Sequence[Candidate]) -> list[Entry]:
    with desk.db.write() as db:
        leases.check(db, lease)
        entries = [store.get(db, each.entry.id) for each in stack]
        check_current(db, entries)
        return [
            store.change(
                db,
                _taken(desk, entry, each.entry.tip),
                "go ahead",
                actor=desk.actor,
                at=desk.now(),
                candidate=each.commit,
                base_before=each.onto,
                tier=each.tier,
                strategy=desk.config.merge.strategy,
            )
            for entry, each in zip(entries, stack, strict=True)
        ]


def _taken(desk: Desk, entry: Entry, tip: str) -> Entry:
    """The entry, taken from the queue unless it was before; raises Withdrawn if it is not there any more."""
    if entry.state == TESTING:
        return entry
    if entry.state not in (QUEUED, WAITING):
        raise Withdrawn(f"{entry.branch} was taken out of the queue", hint="`rook merge list --all` shows it")
    return store.change(desk.db, entry, "take", actor=desk.actor, at=desk.now(), tip=tip)


def _move(desk: Desk, lease: Lease, entries: Sequence[Entry], old: str, new: str) -> None:
    leases.check(desk.db, lease)
    steps.reached("lease checked")
    why = f"land {', '.join(each.branch for each in entries)}"
    commits = {kept.MERGE + each.id: str(each.candidate) for each in entries}
    desk.merging.move(lease.base, new, old, why, fence=lease.fence, kept=commits)
    steps.reached("base moved")


def _record(desk: Desk, lease: Lease, entries: Sequence[Entry]) -> list[Entry]:
    """The base has moved. If the lease was lost just after that, its new holder writes this down."""
    with desk.db.write() as db:
        leases.check(db, lease)
        now = desk.now()
        return [record_landed(desk, each, now) for each in entries]


def unrecorded(error: StorageFailed, base: str, commit: str) -> StorageFailed:
    """Git has moved the base, and the database could not be told."""
    return StorageFailed(
        f"{base} is now at {commit[:12]}, but that could not be recorded: {error.message}",
        hint="make room on the disk, or remove what else stops the database; the next `rook` command records it",
        code=error.code,
    )


def record_landed(desk: Desk, entry: Entry, now: str) -> Entry:
    """Within a transaction: the base contains the candidate, as git says. What landed at once has one time."""
    note = settle.complete_task(desk, entry)
    landed = store.change(
        desk.db, entry, "land", actor=desk.actor, at=now, landed_at=now, kind=None, reason=note or None, files=()
    )
    news.tell_landed(desk, landed)
    after.mark_settled(desk, landed, now)
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


def _end_forward(begun: Sequence[Forward], *, has_moved: bool) -> None:
    for each in begun:
        if has_moved:
            each.finish()
        else:
            each.take_back()


def recover(desk: Desk, lease: Lease) -> list[Entry]:
    """Settle what a killed merger left on this base; what was not through goes back into the queue."""
    # A checkout that could not be settled at once may be all that is left.
    has_settled = desk.merging.mend_checkouts(lease.base)
    left = store.select(desk.db, states=(TESTING, LANDING), base=lease.base)
    if not left and not lease.is_inherited and not has_settled:
        return []
    tip = desk.merging.tip(lease.base)
    settled = []
    for entry in left:
        through = (
            entry.state == LANDING
            and entry.candidate is not None
            and tip is not None
            and desk.merging.store.contains(entry.candidate, tip)
        )
        with desk.db.write() as db:
            leases.check(db, lease)
            if through:
                settled.append(record_landed(desk, entry, desk.now()))
            else:
                settled.append(store.change(db, entry, "put back", actor=desk.actor, at=desk.now()))
        steps.reached("recovered one")
    scratch.sweep(desk)
    desk.merging.settle()
    return settled
