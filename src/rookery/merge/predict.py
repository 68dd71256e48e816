"""What would become of a branch: the tier that would bring it in, and the files in question. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from rookery.base.errors import ProgramFailed
from rookery.base.lockfiles import lockfile_of
from rookery.merge import service
from rookery.merge.landing import candidate
from rookery.merge.landing.eligibility import Survey, protected_paths, why_refused
from rookery.merge.landing.history import Unclear, landed_branches
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
from rookery.merge.tiers import mechanical
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import UNRELATED
from rookery.vcs.git.merging import CannotMerge

SKIPPED = "skipped"


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
            predicted = _predict_stack(on_trial, entries, landed)
    except (CannotMerge, ProgramFailed) as error:
        return [Predicted(entry.branch, base, UNKNOWN, error.message) for entry in entries]
    return [_with_outside(*pair) for pair in zip(entries, predicted, strict=True)]


def _with_outside(entry: Entry, predicted: Predicted) -> Predicted:
    """What would become of a branch, given what it changes outside its agent's files."""
    unexplained = tuple(file.path for file in entry.outside if file.reason is None)
    if not unexplained or predicted.tier in (LANDED, PROTECTED):
        return predicted.replace(outside=entry.outside)
    reason = f"it changes files that {entry.agent} was not given; `rook merge --branch … --outside WHY` gives a reason"
    return Predicted(entry.branch, entry.base, OUTSIDE, reason, unexplained, outside=entry.outside)


def _predict_stack(merger: Merger, entries: Sequence[Entry], landed: set[str]) -> list[Predicted]:
    predicted: dict[str, Predicted] = {}
    base = entries[0].base
    onto = merger.merging.tip(base) or base
    conflicting = []
    for entry in entries:
        branch = entry.branch
        if branch in landed:
            predicted[branch] = Predicted(branch, base, LANDED, f"{base} contains it")
            continue
        try:
            case = candidate.merge(merger, entry, onto)
        except Unclear as error:
            predicted[branch] = Predicted(branch, base, UNKNOWN, f"{error.message}; {error.hint}")
            continue
        if not case.is_settled:
            conflicting.append(entry)
            continue
        predicted[branch] = _predict_clean(merger, case, "it does not conflict")
        if len(entries) > 1 and predicted[branch].tier == CLEAN:
            onto = merger.merging.commit(case.tree, [onto, entry.tip], "rook: a trial")
    # Branches that conflict come last, as in the queue.
    predicted |= {entry.branch: _predict_last(merger, entry, onto) for entry in conflicting}
    return [predicted[entry.branch] for entry in entries]


def _predict_last(merger: Merger, entry: Entry, onto: str) -> Predicted:
    case = candidate.merge(merger, entry, onto)
    if case.is_settled:
        return _predict_clean(merger, case, "it does not conflict with those before it")
    tier, reason = _tier(merger, case)
    kinds = tuple({"path": conflict.path, "kind": conflict.kind} for conflict in case.conflicts)
    return Predicted(entry.branch, entry.base, tier, reason, case.paths, kinds)


def _predict_clean(merger: Merger, case: Case, reason: str) -> Predicted:
    branch, base = case.entry.branch, case.entry.base
    changed = merger.merging.changed_paths([(case.onto, case.tree)])[0]
    protected = protected_paths(changed)
    if protected:
        return Predicted(branch, base, PROTECTED, "it changes Rookery's own folder, so it does not land", protected)
    return Predicted(branch, base, CLEAN, reason, changed)


def _tier(merger: Merger, case: Case) -> tuple[str, str]:
    """The tier that would resolve the conflicts of a case, and why."""
    allowed = merger.ctx.config.merge.tiers
    if any(conflict.kind == UNRELATED for conflict in case.conflicts):
        return HUMAN, "the branch shares no history with the base"
    settled = mechanical.predict(merger, case) if MECHANICAL in allowed else set()
    left = [conflict.path for conflict in case.conflicts if conflict.path not in settled]
    if left:
        reason = f"{len(left)} of {len(case.conflicts)} files need a decision: {', '.join(left[:3])}"
        return next((tier for tier in (AGENT, REIMAGINE) if tier in allowed), HUMAN), reason
    locks = [conflict.path for conflict in case.conflicts if lockfile_of(conflict.path) is not None]
    reason = f"lock files would be made again: {', '.join(locks)}" if locks else "rules settle every conflict"
    return MECHANICAL, reason
