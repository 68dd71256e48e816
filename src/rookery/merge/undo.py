"""Undoing a landing: the base moves back if the landing is still its tip, else a commit on top reverses the change.

The commit stays kept under `refs/rookery/merge/<id>`, and what the base was under `refs/rookery/rescue/undo/<id>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.gates import service as gates
from rookery.merge.landing import completion, messages
from rookery.merge.landing.land import checkouts_following
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, UNDOING, Entry, MergeBusy
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.git.landed import UNDO_TRAILER
from rookery.vcs.git.moves import keep_refs
from rookery.vcs.ref_names import HEADS, RESCUE_UNDO, SAVED, UNDOINGS, undone_name

MOVED_BACK, REVERTED = "moved back", "reverted"


@dataclass(frozen=True, slots=True)
class Undone(Record):
    """A landing that was undone."""

    entry: Entry
    how: str
    commit: str
    """Where the base is now."""
    rescue: str
    """The ref that keeps what the base was."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.entry.id


def undo(merger: Merger, entries: Sequence[Entry]) -> list[Undone]:
    """Undo landings of one base, the newest first; stops at the first that cannot be undone, and raises the reason."""
    for entry in entries:
        if entry.state != LANDED or entry.candidate is None or entry.base_before is None:
            raise InvalidState(f"{entry.id} is {entry.state}", hint="only what Rookery has landed can be undone")
    undone: list[Undone] = []
    for entry in sorted(entries, key=lambda entry: (entry.landed_at or "", entry.id), reverse=True):
        lease = leases.acquire(merger, entry.base)
        if not isinstance(lease, Lease):
            holder = f"{lease.actor} (process {lease.process.pid})"
            raise MergeBusy(f"{holder} lands on {entry.base} just now", hint="try again soon")
        try:
            undone.append(_undo(merger, lease, entry))
        finally:
            leases.release(merger, lease)
    return undone


def _undo(merger: Merger, lease: Lease, entry: Entry) -> Undone:
    merging, base = merger.merging, entry.base
    check_free(merging.store, base)
    tip = merging.tip(base)
    if tip is None:
        raise InvalidState(f"there is no branch {base} any more", hint="its commits are kept by refs/rookery")
    can_move_back = tip == entry.candidate and not _is_elsewhere(merger, entry)
    new, how = (str(entry.base_before), MOVED_BACK) if can_move_back else (_revert(merger, entry, tip), REVERTED)
    if how == REVERTED or _is_within_a_batch(merger, new):
        _gate(merger, entry, new, tip)
    rescue = RESCUE_UNDO + entry.id
    keep_refs(merging.store, {rescue: tip, UNDOINGS + entry.id: new, undone_name(entry.branch): entry.tip})
    with leases.writing(merger, lease) as db:
        store.mark_undoing(db, entry, UNDOING)
    steps.reached("undo recorded")
    begun = merging.begin_forward(base, tip, new)
    undone = None
    try:
        with checkouts_following(merger, base, new, begun):
            leases.check(merger.ctx.db, lease)
            steps.reached("undo checked")
            merging.move(base, new, tip, f"undo {entry.branch}", fence=lease.fence)
            steps.reached("undo moved")
            with leases.writing(merger, lease):
                undone = _record(merger, entry, how)
            steps.reached("undo written")
    finally:  # also when interrupted: no later command would look for this
        if undone is not None:
            merging.settle()
    _restore_branch(merger, entry)
    return Undone(undone, how, new, SAVED + rescue)


def _is_elsewhere(merger: Merger, entry: Entry) -> bool:
    """True if a branch, a tag or a remote has the landing too: it would come back with that, as if never undone."""
    return bool(merger.merging.refs_with(str(entry.candidate)) - {HEADS + entry.base})


def _restore_branch(merger: Merger, entry: Entry) -> None:
    """A branch that was removed because the base contained it is needed again."""
    if merger.merging.tip(entry.branch) is None:
        merger.vcs.create_branch(entry.branch, entry.tip)


def _record(merger: Merger, entry: Entry, how: str) -> Entry:
    undone = merger.change(store.get(merger.ctx.db, entry.id), "undo", kind=None, reason=f"{how} by {merger.actor}")
    messages.tell_undone(merger, undone, is_task_reopened=completion.reopen_task(merger, undone))
    return undone


def recover(merger: Merger, lease: Lease) -> None:
    """Settle an undo that was cut off, by what git says of the base."""
    merging = merger.merging
    for entry in store.undoing(merger.ctx.db):
        if entry.base != lease.base:
            continue
        tip = merging.tip(entry.base)
        new = merging.store.find_commit(SAVED + UNDOINGS + entry.id)
        how = MOVED_BACK if new == entry.base_before else REVERTED
        has_moved = tip is not None and new is not None and merging.store.contains(new, tip)
        if how == MOVED_BACK:
            has_moved = has_moved and not merging.store.contains(str(entry.candidate), str(tip))
        if has_moved:  # before the rows: after a kill in between, the next recovery gets here again
            _restore_branch(merger, entry)
        with leases.writing(merger, lease) as db:
            if has_moved:
                _record(merger, entry, how)
            else:
                store.mark_undoing(db, entry, None)


def _is_within_a_batch(merger: Merger, commit: str) -> bool:
    """True if a commit was never the base by itself, only a step on the way to one, and has not passed the gates."""
    if not merger.ctx.config.gates or not store.is_candidate(merger.ctx.db, commit):
        return False
    return not any(run.is_ok for run in store.gate_runs(merger.ctx.db, tree=merger.merging.tree(commit)))


def _gate(merger: Merger, entry: Entry, new: str, tip: str) -> None:
    """Raise unless the gates pass on what the base would be."""
    retries = merger.ctx.config.merge.retries
    failed = gates.run_gates(merger, new, base=entry.base, at=tip, retries=retries).failed
    if failed is not None:
        raise InvalidState(
            f"without {entry.branch}, {entry.base} does not pass {failed.name}; nothing was changed",
            hint=f"see {failed.log}",
        )


def _revert(merger: Merger, entry: Entry, tip: str) -> str:
    """The base without what one landing brought: a merge of its inverse."""
    merging = merger.merging
    candidate, before = str(entry.candidate), str(entry.base_before)
    if not merging.store.contains(candidate, tip):
        raise InvalidState(
            f"{entry.base} no longer contains {candidate[:12]}", hint="it was rewritten; there is nothing to undo"
        )
    merged = merging.merge_trees(candidate, tip, before)
    if not merged.is_clean:
        paths = ", ".join(conflict.path for conflict in merged.conflicts[:5])
        raise InvalidState(
            f"later work changed the same lines in {paths}, so {entry.branch} cannot be undone by itself",
            hint="undo the later landings first (`rook merge list --all`), or revert it by hand",
        )
    if merged.tree == merging.tree(tip):
        raise InvalidState(
            f"{entry.base} has lost {entry.branch} already: a later commit reverted it",
            hint=f"`rook merge --branch {entry.branch}` lands it again; `rook task reopen` opens its task",
        )
    # Git's own words, so that every reader of the history recognises a revert.
    message = f"Revert: {entry.branch}\n\nThis reverts commit {candidate}.\n\n{UNDO_TRAILER}{entry.id}\n"
    return merging.commit(merged.tree, [tip], message)
