"""What would become of a branch: the tier that would bring it in, and the files in question. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rookery.base.errors import ProgramFailed
from rookery.base.lockfiles import lockfile_of
from rookery.merge.landing import candidate
from rookery.merge.landing.landed import landed_branches
from rookery.merge.landing.protected import protected_paths
from rookery.merge.merger import Merger
from rookery.merge.model import (
    AGENT,
    CLEAN,
    HUMAN,
    LANDED,
    MECHANICAL,
    PROTECTED,
    REIMAGINE,
    UNKNOWN,
    Entry,
    Predicted,
    Skipped,
)
from rookery.merge.tiers import mechanical
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import UNRELATED
from rookery.vcs.git.merging import CannotMerge

SKIPPED = "skipped"


def predict_all(merger: Merger, entries: Sequence[Entry]) -> list[Predicted]:
    """What would become of branches that land on one base in this order: each on top of those that go together."""
    if not entries:
        return []
    base = entries[0].base
    tips = merger.merging.tips([base, *(each.branch for each in entries)])
    if base not in tips:
        return [_of(each, UNKNOWN, reason=f"there is no branch {base}") for each in entries]
    try:
        landed = landed_branches(
            merger, {each.branch: tips[each.branch] for each in entries if each.branch in tips}, base
        )
        with _on_trial(merger) as trial:
            return _predict_all(trial, entries, tips, landed)
    except (CannotMerge, ProgramFailed) as error:
        return [_of(each, UNKNOWN, reason=error.message) for each in entries]


def _predict_all(merger: Merger, entries: Sequence[Entry], tips: dict[str, str], landed: set[str]) -> list[Predicted]:
    found: dict[str, Predicted] = {}
    onto = tips[entries[0].base]
    later = []
    for entry in entries:
        if entry.branch not in tips:
            found[entry.branch] = _of(entry, UNKNOWN, reason=f"there is no branch {entry.branch}")
        elif entry.branch in landed:
            found[entry.branch] = _of(entry, LANDED, needs_agent=False, reason=f"{entry.base} contains it")
        else:
            entry = entry.replace(tip=tips[entry.branch])
            merged = candidate.merge(merger, entry, onto)
            if not merged.is_clean:
                later.append(entry)
                continue
            found[entry.branch] = clean = _clean(merger, entry, onto, merged.tree, "both sides go together")
            if len(entries) > 1 and clean.tier == CLEAN:
                onto = merger.merging.commit(merged.tree, [onto, entry.tip], "rook: a trial")
    # What conflicts is brought in last, as the queue does it.
    found |= {entry.branch: _predict(merger, entry, onto) for entry in later}
    return [found[each.branch] for each in entries]


def _predict(merger: Merger, entry: Entry, base: str) -> Predicted:
    merged = candidate.merge(merger, entry, base)
    if merged.is_clean:
        return _clean(merger, entry, base, merged.tree, "it goes together with all before it")
    kinds = tuple({"path": each.path, "kind": each.kind} for each in merged.conflicts)
    paths = tuple(each.path for each in merged.conflicts)
    allowed = merger.ctx.config.merge.tiers
    case = Case(entry, base, merged.tree, merged.conflicts)
    if any(each.kind == UNRELATED for each in merged.conflicts):
        return _of(entry, HUMAN, paths, kinds, needs_agent=False, reason="the branch shares no history with the base")
    left = merged.conflicts
    if MECHANICAL in allowed:
        settled = mechanical.predict(merger, case)
        left = tuple(each for each in left if each.path not in settled)
        if not left:
            locks = [each.path for each in merged.conflicts if lockfile_of(each.path) is not None]
            reason = f"lock files would be made again: {', '.join(locks)}" if locks else "rules settle every conflict"
            return _of(entry, MECHANICAL, paths, kinds, needs_agent=False, reason=reason)
    why = f"{len(left)} of {len(merged.conflicts)} files need somebody to decide: {', '.join(e.path for e in left[:3])}"
    for tier in (AGENT, REIMAGINE):
        if tier in allowed:
            return _of(entry, tier, paths, kinds, needs_agent=True, reason=why)
    return _of(entry, HUMAN, paths, kinds, needs_agent=False, reason=why)


def _clean(merger: Merger, entry: Entry, onto: str, tree: str, reason: str) -> Predicted:
    changed = merger.merging.changed_paths([(onto, tree)])[0]
    protected = protected_paths(changed)
    if protected:
        reason = "it changes Rookery's own folder, so it does not land"
    return _of(entry, PROTECTED if protected else CLEAN, protected or changed, needs_agent=False, reason=reason)


def skipped(found: Skipped, base: str) -> Predicted:
    """What becomes of a branch that `merge --all` leaves alone."""
    return Predicted(found.branch, base, SKIPPED, (), (), False, found.reason)


def _of(
    entry: Entry,
    tier: str,
    files: tuple[str, ...] = (),
    conflicts: tuple[dict[str, str], ...] = (),
    *,
    needs_agent: bool | None = None,
    reason: str,
) -> Predicted:
    return Predicted(entry.branch, entry.base, tier, files, conflicts, needs_agent, reason)


@contextmanager
def _on_trial(merger: Merger) -> Iterator[Merger]:
    """The same merger, with every object that is made thrown away."""
    real = merger.merging
    with real.on_trial() as trial:
        merger.merging = trial
        try:
            yield merger
        finally:
            merger.merging = real
