"""The use cases of a conflict that a person resolves: open it, hand the result back to the queue, give up.

`alone` lets one process at a time open or close a worktree. The row is written before the worktree is made, and says
when it is ready; no person was told of the worktree before that, so what a kill left is made again from the beginning.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState, Refused, RookError
from rookery.base.text import as_utf8, one_line
from rookery.config import steps
from rookery.config.environ import HUMAN as PERSON
from rookery.merge import push, queue, service
from rookery.merge import store as merges
from rookery.merge.landing.candidate import commit_case, merge
from rookery.merge.merger import Merger
from rookery.merge.model import (
    CANCELLED,
    CONFLICT,
    FAILED,
    HUMAN,
    LANDED,
    MECHANICAL,
    QUEUED,
    RESOLVING,
    WAITING,
    Entry,
)
from rookery.merge.person import closing, explanation, handback, store
from rookery.merge.person.handback import Again, Judgement, Unfinished
from rookery.merge.person.model import (
    GIVEN_UP,
    HAS_LANDED,
    IN_HAND,
    MAKING,
    NOT_LANDED,
    NOTES,
    READY,
    LostLine,
    OpenConflict,
    Resolving,
    place_of,
    shown_place,
)
from rookery.merge.resolve.model import ADDED_MISSING, DELETED_BACK, KEPT_MISSING, OURS, THEIRS
from rookery.merge.tiers import mechanical
from rookery.merge.tiers.case import Case
from rookery.tasks import store as tasks
from rookery.vcs import conflicted
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.merge_tree import UNRELATED
from rookery.vcs.model import ignore_line
from rookery.vcs.ref_names import OPENED, RESOLVED_WORK, SAVED, bring_back
from rookery.worktrees.removal import alone

_SHOWN_LINES = 20
_VERBS = {
    ADDED_MISSING: "put it in",
    KEPT_MISSING: "have it",
    DELETED_BACK: "took it out",
    handback.WHOLE_FILE: "changed the whole file",
}


def open_conflict(merger: Merger, text: str) -> Resolving:
    """Open the conflict of an entry in a worktree; if it is open, say where."""
    entry = service.find(merger, text)
    _check_person(merger)
    with alone(merger.ctx.root):
        conflict = store.find(merger.ctx.db, entry.id)
        if conflict is not None and conflict.step == MAKING and not conflict.is_first:
            return _make_again(merger, entry, conflict)
        if conflict is not None and closing.is_left(merger, conflict):
            closing.close(merger, conflict)
            conflict = None
        entry = merges.get(merger.ctx.db, entry.id)
        if conflict is None:
            return _open_first(merger, entry)
        if handback.open_checkout(merger, entry.id) is None:
            closing.close(merger, conflict)  # raises where there are files all the same
            return _open_first(merger, merges.get(merger.ctx.db, entry.id))
        done = merger.merging.store.ref(SAVED + RESOLVED_WORK + entry.id)
        is_again = (entry.state, entry.kind) == (FAILED, CONFLICT) and done is not None
        if is_again and done == handback.finished(merger, conflict):
            return _open_again(merger, entry, conflict, done)
        return _view(merger, entry, conflict, notes=_notes(merger, entry, conflict))


def _check_person(merger: Merger) -> None:
    if merger.actor != PERSON:
        raise Refused(
            "only a person resolves a conflict this way",
            hint="an agent brings the base into its own branch: `rook worktree rebase NAME`, or by a merge there",
        )


def _open_first(merger: Merger, entry: Entry) -> Resolving:
    entry = _check_open(merger, entry)
    base = merger.merging.tip(entry.base)
    if base is None:
        raise InvalidState(f"there is no branch {entry.base} any more", hint="`rook merge cancel` takes it out")
    begin = merge(merger, entry, base)
    if begin.is_settled:
        raise InvalidState(f"{entry.branch} does not conflict with {entry.base} now", hint=_try_again(entry))
    if any(conflict.kind == UNRELATED for conflict in begin.conflicts):
        raise InvalidState(
            f"{entry.branch} shares no history with {entry.base}, so git cannot say what each side did",
            hint="merge it by hand: `git merge --allow-unrelated-histories`",
        )
    case = _settle_by_rules(merger, begin)
    if case.is_settled:
        if (entry.state, entry.kind) != (FAILED, CONFLICT):
            raise InvalidState(f"rules settle all conflicts of {entry.branch}", hint=_try_again(entry))
        case = begin  # what the rules made of it was turned down
    was: dict[str, Any] = {
        "state": entry.state,
        "kind": entry.kind,
        "reason": entry.reason,
        "tier": entry.tier,
        "files": entry.files,
    }
    return _make(merger, entry, case, was=was, base=base, tip=entry.tip)


def _check_open(merger: Merger, entry: Entry) -> Entry:
    """The entry with the present tip of its branch; raises if it is not one to resolve."""
    if entry.state not in (QUEUED, WAITING, FAILED):
        hints = {CANCELLED: f"`rook merge retry {entry.id}` queues it again", LANDED: f"`rook merge undo {entry.id}`"}
        hint = hints.get(entry.state, "`rook merge list --all` shows what becomes of it")
        raise InvalidState(f"{entry.branch} is {entry.state}: there is no conflict to resolve", hint=hint)
    _check_newest(merger, entry)
    tip = merger.merging.tip(entry.branch)
    if tip is None:
        raise InvalidState(f"there is no branch {entry.branch} any more", hint=bring_back(entry.branch, entry.tip))
    return entry.replace(tip=tip)


def _check_newest(merger: Merger, entry: Entry) -> None:
    newest = merges.newest(merger.ctx.db, entry.branch, entry.base)
    if newest is not None and newest.id != entry.id and newest.is_open:
        raise InvalidState(f"{entry.branch} is queued again", hint=f"`rook merge resolve {newest.id}`")


def _try_again(entry: Entry) -> str:
    return f"`rook merge retry {entry.id}`, then `rook merge run`" if entry.state == FAILED else "`rook merge run`"


def _settle_by_rules(merger: Merger, case: Case) -> Case:
    return mechanical.attempt(merger, case) if MECHANICAL in merger.ctx.config.merge.tiers else case


def _open_again(merger: Merger, entry: Entry, old: OpenConflict, done: str) -> Resolving:
    """Open what conflicts between a person's earlier commit and what the base or the branch got since."""
    entry = _check_open(merger, entry)
    joined = handback.join(merger, entry, old, done)
    if not isinstance(joined, Again):
        raise InvalidState(
            f"what was resolved in {place_of(merger.ctx.root, entry.id)} does not conflict any more",
            hint=f"`rook merge resolve {entry.id} --done` lands it",
        )
    if not joined.conflicts:  # nothing of the earlier commit can be used: a side of it is gone
        closing.close(merger, old)
        return _open_first(merger, merges.get(merger.ctx.db, entry.id))
    base = str(merger.merging.tip(entry.base))
    closing.save(merger, old)
    merger.merging.keep(RESOLVED_WORK + entry.id, joined.theirs if joined.ours == base else joined.ours)
    has_base = merger.merging.store.contains(base, joined.ours)
    sides = {"ours": joined.ours, "theirs": joined.theirs, "tip": entry.tip}
    return _make_again(merger, entry, old.replace(base_commit=base if has_base else old.base_commit, **sides))


def _make_again(merger: Merger, entry: Entry, conflict: OpenConflict) -> Resolving:
    """Open a conflict that a row describes, and of which no worktree is ready."""
    begin = handback.merge_sides(merger, entry, conflict)
    case = _settle_by_rules(merger, begin)
    case = begin if case.is_settled else case
    entry = entry.replace(tip=conflict.tip)
    return _make(merger, entry, case, was=conflict.was, base=conflict.base_commit, tip=conflict.tip)


def _make(merger: Merger, entry: Entry, case: Case, *, was: dict[str, Any], base: str, tip: str) -> Resolving:
    """Record that a conflict is open, and make its worktree."""
    now, place = merger.ctx.now(), place_of(merger.ctx.root, entry.id)
    ours, theirs = case.onto, case.entry.tip
    values = (base, tip, ours, theirs, case.paths, was, None, None, merger.actor, now)
    conflict = OpenConflict(entry.id, MAKING, *values)
    is_known = store.find(merger.ctx.db, entry.id) is not None
    if not is_known and os.path.lexists(place):
        raise InvalidState(f"{place} already exists", hint="move it away: Rookery has no record of it")
    message = merger.merging.message(commit_case(merger, case.replace(entry=entry), tier=HUMAN))
    with merger.ctx.db.write() as db:
        store.insert(db, conflict)
        reason = f"being resolved by a person in {shown_place(entry.id)}"
        current = merges.get(db, entry.id)
        entry = merger.change(current, "resolve", kind=RESOLVING, reason=reason, tip=entry.tip, files=case.paths[:200])
    steps.reached("resolution recorded")
    git = merger.merging.store
    try:
        conflicted.remove(git, place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        conflicted.begin(git, place, ours, theirs, case.tree, case.conflicts, message)
        steps.reached("resolution merged")
        view = _view(merger, entry, conflict, case=case, is_new=True)
        here = Git(place, merger.ctx.config.vcs.timeout)
        here.exclude([ignore_line(NOTES)])
        write_whole(os.path.join(place, NOTES), explanation.as_text(view).encode("utf-8", "surrogateescape"))
        conflicted.lock(git, place, f"a person resolves a conflict here: rook merge resolve {entry.id}")
        here.snapshot(OPENED + entry.id, f"{entry.branch} with its conflicts", replace=True)
        steps.reached("resolution explained")
    except Exception:
        if conflict.is_first:  # else the next `rook merge resolve` goes on: the row says what was resolved before
            with suppress(RookError):
                closing.close(merger, conflict)
        raise
    with merger.ctx.db.write() as db:
        store.update(db, entry.id, step=READY)
    steps.reached("resolution ready")
    return view


def _view(
    merger: Merger,
    entry: Entry,
    conflict: OpenConflict,
    *,
    case: Case | None = None,
    is_new: bool = False,
    notes: tuple[str, ...] = (),
) -> Resolving:
    case = case or handback.merge_sides(merger, entry, conflict)
    task = tasks.existing(merger.ctx.db, entry.task_id)
    files = explanation.explain(merger, entry, conflict, case)
    settled = tuple(dict.fromkeys(as_utf8(one.path) for one in case.outcomes if one.path not in conflict.files))
    place, purpose = place_of(merger.ctx.root, entry.id), None if task is None else one_line(task.title)
    return Resolving(entry, IN_HAND, place, files, settled, purpose, is_new, notes)


def _notes(merger: Merger, entry: Entry, conflict: OpenConflict) -> tuple[str, ...]:
    """What a person has to know of a conflict that is open already."""
    notes = [f"opened by {conflict.opened_by} at {conflict.opened_at}"]
    commit = handback.finished(merger, conflict)
    if isinstance(commit, Unfinished):
        notes += [commit.reason, commit.hint]
    else:
        notes.append(f"{commit[:12]} is committed there")
    if entry.state == FAILED:
        notes.append(f"it did not land: {entry.reason}")
    if merger.merging.tip(entry.base) != conflict.base_commit:
        notes.append(f"{entry.base} has moved since; your result will be merged with it")
    if merger.merging.tip(entry.branch) != conflict.tip:
        notes.append(f"{entry.branch} has new commits; they will be merged with your result")
    return tuple(notes)


def hand_back(merger: Merger, text: str, *, accept_loss: bool) -> Resolving:
    """Hand what a person has committed back to the queue, and land it; nothing if the merger has done so already."""
    entry = service.find(merger, text)
    if _has_landed(entry):
        return Resolving(entry, HAS_LANDED, place_of(merger.ctx.root, entry.id))
    entry, conflict = _find_open(merger, text)
    if entry.state == CANCELLED:
        raise InvalidState(
            f"{entry.branch} was taken out of the queue", hint=f"`rook merge retry {entry.id}` puts it back"
        )
    _check_newest(merger, entry)
    commit = handback.finished(merger, conflict)
    if isinstance(commit, Unfinished):
        entry = merges.get(merger.ctx.db, entry.id)
        if _has_landed(entry):  # another merger was faster
            return Resolving(entry, HAS_LANDED, place_of(merger.ctx.root, entry.id))
        raise InvalidState(commit.reason, hint=commit.hint)
    judgement = handback.judge(merger, conflict, entry, commit)
    _check(merger, entry, conflict, commit, judgement, accept_loss=accept_loss)
    with merger.ctx.db.write() as db:
        if accept_loss:
            store.update(db, entry.id, accepted=commit)
        entry = merges.get(db, entry.id)
        if entry.state == FAILED:
            service.queue_again(merger, entry)
    steps.reached("resolution handed back")
    landing = push.after_landing(merger, queue.work(merger, entry.base, {entry.id}))
    entry = merges.get(merger.ctx.db, entry.id)
    status = HAS_LANDED if entry.state == LANDED else NOT_LANDED
    return Resolving(entry, status, place_of(merger.ctx.root, entry.id), lost=judgement.lost, landing=landing)


def _has_landed(entry: Entry) -> bool:
    return (entry.state, entry.tier) == (LANDED, HUMAN)


def _check(
    merger: Merger, entry: Entry, conflict: OpenConflict, commit: str, judgement: Judgement, *, accept_loss: bool
) -> None:
    """Raise if a person's commit cannot land, with the lines that it leaves out."""
    place = place_of(merger.ctx.root, entry.id)
    if judgement.problems:
        problems = "\n".join(f"  {one_line(path)}: {why}" for path, why in judgement.problems)
        hint = f"settle them in {place}, commit, and say --done again"
        raise InvalidState(f"what is committed is not finished:\n{problems}", hint=hint)
    if judgement.lost and not accept_loss and conflict.accepted != commit:
        shown = "\n".join(f"  {_lost(line, entry)}" for line in judgement.lost[:_SHOWN_LINES])
        more = len(judgement.lost) - _SHOWN_LINES
        shown += f"\n  and {more} more" if more > 0 else ""
        raise InvalidState(
            f"what is committed leaves out {handback.changes(judgement.lost)} of one side or the other:\n{shown}",
            hint=f"if that is meant: `rook merge resolve {entry.id} --done --accept-loss`",
        )


def _lost(lost: LostLine, entry: Entry) -> str:
    """A lost line in a sentence."""
    side = {OURS: entry.base, THEIRS: entry.branch}.get(lost.side, "both sides")
    verb = _VERBS[lost.kind]
    return f"{one_line(lost.path)}: {one_line(lost.line, 120)}  ({one_line(side)} {verb})"


def give_up(merger: Merger, text: str) -> Resolving:
    """Close an open conflict without landing it; what a person did there is saved first."""
    entry, _ = _find_open(merger, text)
    with alone(merger.ctx.root):
        conflict = store.find(merger.ctx.db, entry.id)
        entry = merges.get(merger.ctx.db, entry.id)
        if conflict is None:
            raise InvalidState(f"another process has closed it: {entry.branch}", hint="`rook merge list --all`")
        if entry.state not in (QUEUED, WAITING, FAILED, CANCELLED):
            raise InvalidState(f"{entry.branch} is {entry.state} just now", hint="`rook merge list` shows its state")
        rescue = closing.close(merger, conflict)
    entry = merges.get(merger.ctx.db, entry.id)
    return Resolving(entry, GIVEN_UP, place_of(merger.ctx.root, entry.id), rescue=rescue)


def _find_open(merger: Merger, text: str) -> tuple[Entry, OpenConflict]:
    entry = service.find(merger, text)
    _check_person(merger)
    conflict = store.find(merger.ctx.db, entry.id)
    if conflict is None and entry.state == LANDED:
        raise InvalidState(f"{entry.branch} has landed", hint=f"`rook merge undo {entry.id}` undoes it")
    if conflict is None:
        raise InvalidState(
            f"no conflict of {entry.branch} is open", hint=f"`rook merge resolve {entry.id}` opens it, if it conflicts"
        )
    return entry, conflict
