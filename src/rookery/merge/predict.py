"""What would become of a branch: the tier that would bring it in, and the files in question. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import takewhile

from rookery.base.errors import ProgramFailed
from rookery.base.lockfiles import lockfile_of
from rookery.base.text import as_utf8, plural
from rookery.merge import service, store
from rookery.merge.landing import candidate
from rookery.merge.landing.eligibility import Survey, protected_paths, why_refused
from rookery.merge.landing.history import Start, Unclear, landed_branches, start_of
from rookery.merge.merger import Merger
from rookery.merge.model import (
    AGENT,
    CLEAN,
    HUMAN,
    LANDED,
    MECHANICAL,
    OUTSIDE,
    PROTECTED,
    REIMAGINE,
    UNKNOWN,
    Entry,
    Predicted,
)
from rookery.merge.person import handback
from rookery.merge.person import store as persons
from rookery.merge.person.model import shown_place
from rookery.merge.tiers import mechanical
from rookery.merge.tiers.case import Case
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.merge_tree import UNRELATED
from rookery.vcs.git.merging import CannotMerge, Trial

SKIPPED = "skipped"
_MOST_TOGETHER = 64


def predict_survey(merger: Merger, base: str, surveyed: Survey, *, force: bool) -> list[Predicted]:
    """What would become of surveyed branches; those that may not land come last."""
    names = [*surveyed.ready, *(entry.branch for entry in surveyed.queued)]
    drafts = [service.draft(merger, name, base, force=force) for name in names]
    refusals = {entry.branch: why_refused(merger.ctx.db, entry) for entry in drafts}
    predicted = predict_all(merger, [entry for entry in drafts if not refusals[entry.branch]])
    skipped = [(branch, reason) for branch, reason in refusals.items() if reason]
    skipped += [(skip.branch, skip.reason) for skip in surveyed.skipped]
    return [*predicted, *(Predicted(branch, base, SKIPPED, reason) for branch, reason in skipped)]


def predict_all(merger: Merger, entries: Sequence[Entry]) -> list[Predicted]:
    """What would become of branches that land on one base in this order: each on top of the clean ones before it."""
    if not entries:
        return []
    base = entries[0].base
    try:
        landed = landed_branches(merger, {entry.branch: entry.tip for entry in entries}, base)
        with merger.merging.on_trial() as trial:  # throws away every object that it makes
            on_trial = copy(merger)
            on_trial.merging = trial
            return _predict_stack(on_trial, trial, entries, landed)
    except (CannotMerge, ProgramFailed) as error:
        return [Predicted(entry.branch, base, UNKNOWN, error.message) for entry in entries]


def _predict_stack(merger: Merger, trial: Trial, entries: Sequence[Entry], landed: set[str]) -> list[Predicted]:
    base = entries[0].base
    stack = _Stack(merger, trial, merger.merging.tip(base) or base)
    predicted = {name: Predicted(name, base, LANDED, f"{base} contains it") for name in landed}
    left = [entry for entry in entries if entry.branch not in landed]
    predicted |= {entry.branch: _held(entry) for entry in left if _unexplained(entry)}
    predicted |= {entry.branch: by_hand for entry in left if (by_hand := _with_person(merger, entry))}
    predicted |= stack.add([entry for entry in left if entry.branch not in predicted])
    # Branches that conflict come last, as in the queue.
    predicted |= {entry.branch: _predict_last(merger, entry, stack.onto) for entry in stack.conflicting}
    return [predicted[entry.branch].replace(outside=entry.outside) for entry in entries]


def _unexplained(entry: Entry) -> tuple[str, ...]:
    return tuple(file.path for file in entry.outside if file.reason is None)


def _held(entry: Entry) -> Predicted:
    """A branch that changes files outside of its agent's without a reason is held before anything is merged."""
    reason = f"it changes files that {entry.agent} was not given; `rook merge --branch … --outside WHY` gives a reason"
    return Predicted(entry.branch, entry.base, OUTSIDE, reason, _unexplained(entry))


def _with_person(merger: Merger, entry: Entry) -> Predicted | None:
    """A branch whose conflict a person has open lands as the person resolves it, whatever the tiers could do."""
    current = store.newest(merger.ctx.db, entry.branch, entry.base)
    conflict = None if current is None or current.commit else persons.find(merger.ctx.db, current.id)
    if current is None or conflict is None:
        return None
    place = shown_place(current.id)
    commit = handback.finished(merger, conflict)
    reason = f"a person resolves its conflict in {place}"
    if isinstance(commit, str):
        held = handback.why_held(handback.judge(merger, conflict, entry, commit), conflict, commit)
        joined = handback.join(merger, entry, conflict, commit)
        held = joined.reason if isinstance(joined, handback.Again) else held
        reason = f"it is resolved by hand in {place}" + (f", and waits: {held}" if held else "")
    return Predicted(entry.branch, entry.base, HUMAN, reason, tuple(map(as_utf8, conflict.files)))


class _Stack:
    """Branches on top of each other, in order, without those that conflict.

    A git for each merge takes seconds where there are hundreds. So each branch is merged with the base first, all by
    one git, and then many of those at once that do not conflict there: neighbours in pairs, the results in pairs again.
    Where a group conflicts, smaller ones are tried, and in the end a branch alone.
    """

    def __init__(self, merger: Merger, trial: Trial, base: str) -> None:
        self.merger = merger
        self.trial = trial
        self.base = self.onto = base
        self.conflicting: list[Entry] = []

    def add(self, entries: Sequence[Entry]) -> dict[str, Predicted]:
        """What becomes of branches, but for those that conflict."""
        alone = self._merge_alone(entries)
        predicted: dict[str, Predicted] = {}
        left, size = list(entries), _MOST_TOGETHER
        while left:
            group = list(takewhile(lambda entry: entry.branch in alone, left[:size]))
            together = self._merge_together([alone[entry.branch][0] for entry in group]) if len(group) > 1 else None
            if together is not None:
                self.onto = together
                predicted |= {entry.branch: _clean(entry, alone[entry.branch][1]) for entry in group}
                left, size = left[len(group) :], min(_MOST_TOGETHER, size * 2)
            elif len(group) > 1:
                size = max(1, len(group) // 4)
            else:
                predicted |= self._add_one(left.pop(0))
                size = min(_MOST_TOGETHER, size * 2)
        return predicted

    def _merge_alone(self, entries: Sequence[Entry]) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Each branch that merges into the base as git does it: the commit, and the paths that it changes there."""
        git_landed.compare_many(self.merger.merging.store, [entry.tip for entry in entries], self.base)
        plain = [entry for entry in entries if self._is_plain(entry)]
        merges = self.trial.merge_many([(self.base, entry.tip) for entry in plain])
        clean = [(entry, merged.tree) for entry, merged in zip(plain, merges, strict=True) if merged.is_clean]
        changes = self.trial.changes_of([(self.base, tree) for _, tree in clean])
        alone = {}
        for (entry, tree), changed in zip(clean, changes, strict=True):
            paths = tuple(change.path for change in changed)
            # Where a file may have been renamed, git's answer depends on what it merges first.
            if not protected_paths(paths) and not any(change.is_deleted for change in changed):
                alone[entry.branch] = self.trial.stack(tree, self.base, entry.tip), paths
        return alone

    def _is_plain(self, entry: Entry) -> bool:
        """True if nothing of the branch was reverted, squashed or rebased on the base."""
        try:
            return start_of(self.merger, entry.branch, entry.tip, entry.base) == Start()
        except Unclear:
            return False

    def _merge_together(self, commits: Sequence[str]) -> str | None:
        """Commits on top of the stack, all merged; None if two of them conflict."""
        groups = [self.onto, *commits]
        while len(groups) > 1:
            pairs = list(zip(groups[::2], groups[1::2], strict=False))
            merges = self.trial.merge_many(pairs)
            if not all(merged.is_clean for merged in merges):
                return None
            joined = [self.trial.stack(merged.tree, *pair) for pair, merged in zip(pairs, merges, strict=True)]
            groups = [*joined, *groups[2 * len(pairs) :]]
        return groups[0]

    def _add_one(self, entry: Entry) -> dict[str, Predicted]:
        """What becomes of a branch; nothing if it conflicts."""
        try:
            case = candidate.merge(self.merger, entry, self.onto)
        except Unclear as error:
            return {entry.branch: Predicted(entry.branch, entry.base, UNKNOWN, f"{error.message}; {error.hint}")}
        if not case.is_settled:
            self.conflicting.append(entry)
            return {}
        predicted = _clean(entry, self.trial.changed_paths([(case.onto, case.tree)])[0])
        if predicted.tier == CLEAN:
            self.onto = self.trial.stack(case.tree, self.onto, entry.tip)
        return {entry.branch: predicted}


def _predict_last(merger: Merger, entry: Entry, onto: str) -> Predicted:
    case = candidate.merge(merger, entry, onto)
    if case.is_settled:
        changed = merger.merging.changed_paths([(case.onto, case.tree)])[0]
        return _clean(entry, changed, "it does not conflict with those before it")
    tier, reason = _tier(merger, case)
    kinds = tuple({"path": conflict.path, "kind": conflict.kind} for conflict in case.conflicts)
    return Predicted(entry.branch, entry.base, tier, reason, case.paths, kinds)


def _clean(entry: Entry, changed: tuple[str, ...], reason: str = "it does not conflict") -> Predicted:
    """What becomes of a branch that does not conflict."""
    protected = protected_paths(changed)
    if protected:
        reason = "it changes Rookery's own folder, so it does not land"
        return Predicted(entry.branch, entry.base, PROTECTED, reason, protected)
    return Predicted(entry.branch, entry.base, CLEAN, reason, changed)


def _tier(merger: Merger, case: Case) -> tuple[str, str]:
    """The tier that would resolve the conflicts of a case, and why."""
    allowed = merger.ctx.config.merge.tiers
    if any(conflict.kind == UNRELATED for conflict in case.conflicts):
        return HUMAN, "the branch shares no history with the base"
    settled = mechanical.predict(merger, case) if MECHANICAL in allowed else set()
    left = [conflict.path for conflict in case.conflicts if conflict.path not in settled]
    if left:
        reason = f"a decision is needed in {len(left)} of {plural(len(case.conflicts), 'file')}: {', '.join(left[:3])}"
        return next((tier for tier in (AGENT, REIMAGINE) if tier in allowed), HUMAN), reason
    locks = [conflict.path for conflict in case.conflicts if lockfile_of(conflict.path) is not None]
    reason = f"lock files would be made again: {', '.join(locks)}" if locks else "rules settle every conflict"
    return MECHANICAL, reason
