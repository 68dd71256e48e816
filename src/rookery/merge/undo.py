"""Undoing landings: the base moves back if they are still its tip, else commits on top reverse what they changed.

All of one base are undone by one move of it, and nothing is done that is not in the plan (`undo_plan.py`), or that has
changed since. The commits stay kept under `refs/rookery/merge/<id>`, and what the base was under
`refs/rookery/rescue/undo/<id>`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from rookery.base.errors import InvalidState, ProgramFailed, Refused, RookError
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.gates import service as gates
from rookery.merge.gating import Gating
from rookery.merge.landing import completion, land, messages
from rookery.merge.landing.land import checkouts_following
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, QUEUED, UNDOING, WAITING, Entry, MergeBusy
from rookery.merge.undo_plan import (
    MOVED_BACK,
    REVERTED,
    Removal,
    Undo,
    UndoMessage,
    Undone,
    check_ended,
    describe,
    look_at,
    remove,
    reopened_tasks,
    together,
)
from rookery.tasks import store as tasks
from rookery.vcs.git.moves import keep_refs
from rookery.vcs.ref_names import RESCUE_UNDO, SAVED, UNDOINGS, undone_name

_TRIES = 5


class UndoChanged(Refused):
    """What would be undone is no longer what was shown."""

    code = "undo_changed"
    default_hint = "`--dry-run` shows what it would do now"


def undo(merger: Merger, make: Callable[[], Undo], agree: Callable[[Undo], bool]) -> Undo:
    """Do what a plan says, if it is agreed to; where something has changed since, the new plan has to be agreed to.

    Raises the reason if something cannot be undone; then nothing is changed on that base and those after it.
    """
    done: list[Undo] = []
    for left in reversed(range(_TRIES)):
        try:
            plan = make()
            if not plan.bases:
                break
            if not agree(plan):
                raise Refused(f"nothing {'more ' if done else ''}was undone", code="declined")
            for base in plan.bases:
                done.append(_undo_base(merger, plan.on(base), make))  # noqa: PERF401 - errors tell of those done
            break
        except UndoChanged:
            if not left:
                raise
            merger.say("something has changed in the meantime\n")
        except RookError as error:
            raise _after(done, error) from None
    return together([Undo(plan.run_id), *done]).replace(is_done=True, kept=plan.kept)


def _after(done: Sequence[Undo], error: RookError) -> RookError:
    """An error that says what was undone before it."""
    if done:
        bases = ", ".join(base for part in done for base in part.bases)
        error.message += f"; on {bases} everything is undone"
    return error


def _undo_base(merger: Merger, plan: Undo, make: Callable[[], Undo]) -> Undo:
    (base,) = plan.bases
    lease = leases.acquire(merger, base)
    if not isinstance(lease, Lease):
        holder = f"{lease.actor} (process {lease.process.pid})"
        raise MergeBusy(f"{holder} lands on {base} just now", hint="try again soon")
    try:
        land.recover(merger, lease)
        recover(merger, lease)
        merger.merging.refresh()
        if not make().on(base).has_same_effects(plan):
            raise UndoChanged(f"what would be undone on {base} has changed")
        return _undo_landings(merger, lease, plan) if plan.landings else _withdraw_alone(merger, lease, plan)
    finally:
        leases.release(merger, lease)


def _undo_landings(merger: Merger, lease: Lease, plan: Undo) -> Undo:
    merging, base = merger.merging, lease.base
    removals, _ = remove(merging, [landing.entry for landing in plan.landings])
    tip, new = merging.tip(base), removals[-1].commit
    if tip is None or [(entry.id, how) for entry, how, _ in removals] != [(one.id, one.how) for one in plan.landings]:
        raise UndoChanged(f"{base} has moved")
    if any(how == REVERTED for _, how, _ in removals) or _is_within_a_batch(merger, new):
        _gate(merger, removals, new, tip)
    facts = look_at(merger, merging.store, removals, {})
    kept: dict[str, str] = {}
    for entry, *_ in removals:
        kept |= {RESCUE_UNDO + entry.id: tip, UNDOINGS + entry.id: new, undone_name(entry.branch): entry.tip}
    keep_refs(merging.store, kept)
    with leases.writing(merger, lease) as db:  # the gates may have taken long
        _check_unchanged(merger, plan, describe(merger, plan.run_id, removals, plan.withdrawn, facts))
        for entry, *_ in removals:
            store.mark_undoing(db, entry, UNDOING)
    steps.reached("undo recorded")
    undone = None
    try:
        begun = merging.begin_forward(base, tip, new)
        with checkouts_following(merger, base, new, begun):
            leases.check(merger.ctx.db, lease)
            steps.reached("undo checked")
            why = ", ".join(entry.branch for entry, *_ in removals)
            merging.move(base, new, tip, f"undo {why}", fence=lease.fence)
            steps.reached("undo moved")
            for entry, *_ in removals:
                _restore_branches(merger, entry, facts[entry.id].unlanded)
            with leases.writing(merger, lease):
                parts = [_record(merger, entry, how, facts[entry.id].unlanded) for entry, how, _ in removals]
                undone = together([*parts, Undo(withdrawn=_withdraw(merger, plan))])
            steps.reached("undo written")
    except RookError:
        with suppress(RookError):
            recover(merger, lease)
        raise
    finally:  # also when interrupted: no later command would look for this
        if undone is not None:
            merging.settle()
    landings = [
        Undone(one.entry, how, facts[entry.id].commits, commit, SAVED + RESCUE_UNDO + entry.id)
        for one, (entry, how, commit) in zip(undone.landings, removals, strict=True)
    ]
    return undone.replace(run_id=plan.run_id, landings=tuple(landings))


def _check_unchanged(merger: Merger, plan: Undo, current: Undo) -> None:
    """Within the transaction after which it begins: raise unless the rows are still those of the plan."""
    db = merger.ctx.db
    if plan.run_id is not None:
        check_ended(db, plan.run_id)
    has_queue = all(store.get(db, entry.id).state in (QUEUED, WAITING) for entry in plan.withdrawn)
    if not has_queue or not current.has_same_effects(plan):
        raise UndoChanged("what would be undone has changed")


def _withdraw_alone(merger: Merger, lease: Lease, plan: Undo) -> Undo:
    """Take entries out of the queue for a base on which nothing has to be undone."""
    with leases.writing(merger, lease):
        _check_unchanged(merger, plan, plan)
        withdrawn = _withdraw(merger, plan)
    steps.reached("undo withdrawn")
    return plan.replace(withdrawn=withdrawn)


def _withdraw(merger: Merger, plan: Undo) -> tuple[Entry, ...]:
    """Within a transaction: take out of the queue what the plan names and is there."""
    entries = [store.get(merger.ctx.db, entry.id) for entry in plan.withdrawn]
    reason = f"{plan.run_id} was undone by {merger.actor}"
    return tuple(
        merger.change(entry, "cancel", kind=None, reason=reason)
        for entry in entries
        if entry.state in (QUEUED, WAITING)
    )


def _restore_branches(merger: Merger, entry: Entry, unlanded: Sequence[str]) -> None:
    """Branches that were removed because the base contained them are needed again."""
    rows = tasks.get_many(merger.ctx.db, unlanded).values()
    tips = {str(task.branch): str(task.commit) for task in rows if task.branch and task.commit}
    for branch, tip in (tips | {entry.branch: entry.tip}).items():
        if merger.merging.tip(branch) is None:
            try:
                merger.vcs.create_branch(branch, tip)
            except ProgramFailed as error:  # another branch has a name that leaves no room for it; a ref keeps its work
                merger.say(f"cannot restore {branch}: {error.message}\n")


def _record(merger: Merger, entry: Entry, how: str, unlanded: Sequence[str]) -> Undo:
    """Within a transaction: what is undone, with the tasks that are open again and the messages that were sent."""
    undone = merger.change(store.get(merger.ctx.db, entry.id), "undo", kind=None, reason=f"{how} by {merger.actor}")
    opened = completion.reopen_tasks(merger, unlanded)
    for task_id in {*unlanded} - {entry.task_id}:
        for other in store.select(merger.ctx.db, task_id=task_id, base=entry.base, states=(LANDED,)):
            if other.base_before is None:  # it came with this one
                merger.change(other, "undo", reason=f"it had come with {entry.branch}, and went with it")
    names = messages.tell_undone(merger, undone, is_task_reopened=any(task.id == entry.task_id for task in opened))
    subject = messages.undone_subject(undone)
    return Undo(
        landings=(Undone(undone, how, 0),),
        tasks=tuple(reopened_tasks(entry, opened, unlanded)),
        mail=tuple(UndoMessage(entry.id, name, subject) for name in names),
    )


def recover(merger: Merger, lease: Lease) -> None:
    """Settle an undo that was cut off, by what git says of the base."""
    merging = merger.merging
    entries = [entry for entry in store.undoing(merger.ctx.db) if entry.base == lease.base]
    at = merging.tip(lease.base)
    facts = completion.find_unlanded(merger, merging.store, entries, {} if at is None else {lease.base: at})
    for entry in entries:
        tip, candidate = merging.tip(entry.base), str(entry.candidate)
        new = merging.store.find_commit(SAVED + UNDOINGS + entry.id)
        has_moved = tip is not None and new is not None and merging.store.contains(new, tip)
        # A reversal keeps what it reverts in its history, and is a commit that was on no base before.
        is_reversal = new is not None and new != entry.base_before and merging.store.contains(candidate, new)
        how = REVERTED if is_reversal else MOVED_BACK
        if how == MOVED_BACK:
            has_moved = has_moved and not merging.store.contains(candidate, str(tip))
        if has_moved:  # before the rows: after a kill in between, the next recovery gets here again
            _restore_branches(merger, entry, facts[entry.id])
        with leases.writing(merger, lease) as db:
            if has_moved:
                _record(merger, entry, how, facts[entry.id])
            else:
                store.mark_undoing(db, entry, None)


def _is_within_a_batch(merger: Merger, commit: str) -> bool:
    """True if a commit was never the base by itself, only a step on the way to one, and has not passed the gates."""
    if not merger.ctx.config.gates or not store.is_candidate(merger.ctx.db, commit):
        return False
    return not any(run.is_ok for run in store.gate_runs(merger.ctx.db, tree=merger.merging.tree(commit)))


def _gate(merger: Merger, removals: Sequence[Removal], new: str, tip: str) -> None:
    """Raise unless the gates pass on what the base would be; what fails on the base as it is does not count."""
    entry, retries = removals[0].entry, merger.ctx.config.merge.retries
    gating = Gating(merger, entry.base)
    for run in gates.run_gates(merger, new, base=entry.base, at=tip, retries=retries, goes_on=True).runs:
        if run.is_ok:
            continue
        on_base = gating.ask_base(run)
        if on_base is not None and not on_base.is_ok:
            merger.say(f"{entry.base} itself fails {run.name}, with and without what is undone\n")
            continue
        without = entry.branch if len(removals) == 1 else f"these {len(removals)} landings"
        raise InvalidState(
            f"without {without}, {entry.base} does not pass {run.name}; nothing was changed", hint=f"see {run.log}"
        )
