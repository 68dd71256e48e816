"""The mechanical tier: what the rules prove, file by file. What they decline is left for the tiers above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rookery.base.lockfiles import lockfile_of
from rookery.base.text import plural
from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, MECHANICAL, RESOLVED, FileOutcome
from rookery.merge.resolve import loss
from rookery.merge.resolve.files import Settings, lineage_of, resolve
from rookery.merge.resolve.model import Declined, Resolved, Sides
from rookery.merge.tiers import lockfiles
from rookery.merge.tiers.case import Case, is_text, sides_of
from rookery.vcs.git.merge_tree import ADD_ADD, CONTENT, REGULAR, Conflict, Side

_TEXT = (CONTENT, ADD_ADD)
"""What rules on text may settle. An edit against a deletion is never among it: a person meant one of the two."""


def attempt(merger: Merger, case: Case) -> Case:
    """Settle every file that the rules can settle."""
    locks, others = _split(case)
    case = _settle(merger, case, *_resolve(merger, case, others))
    if locks and len(case.conflicts) == len(locks):  # a lock file is made from manifests, so these come first
        case = _settle(merger, case, *lockfiles.regenerate(merger, case, locks))
    return case


def predict(merger: Merger, case: Case) -> set[str]:
    """The files that the rules would settle, and the lock files whose programs are there to make them again."""
    locks, others = _split(case)
    settled, _ = _resolve(merger, case, others)
    return settled.keys() | {lock.path for lock in locks if lockfiles.can_regenerate(merger, lock.path)}


def _split(case: Case) -> tuple[list[Conflict], list[Conflict]]:
    """The lock files, and all other conflicts."""
    locks = [conflict for conflict in case.conflicts if conflict.kind in _TEXT and lockfile_of(conflict.path)]
    return locks, [conflict for conflict in case.conflicts if conflict not in locks]


def _resolve(merger: Merger, case: Case, conflicts: Sequence[Conflict]) -> tuple[dict[str, Side], list[FileOutcome]]:
    """The files that the rules settle, and what they say of every file."""
    config = merger.ctx.config.merge
    settings = Settings(rules=config.rules, unions=config.unions)
    sides = {conflict.path: sides_of(merger, case, conflict) for conflict in conflicts if _is_mergeable(conflict)}
    lineage = lineage_of(sides.values(), settings=settings)
    settled: dict[str, Side] = {}
    outcomes = []
    for conflict in conflicts:
        why = f"a conflict of kind {conflict.kind} is not for rules on text"
        outcome = FileOutcome(conflict.path, conflict.kind, MECHANICAL, DECLINED, why)
        if _is_mergeable(conflict):
            answer = resolve(sides[conflict.path], lineage=lineage, settings=settings)
            outcome = _judge(outcome, sides[conflict.path], answer)
            if isinstance(answer, Resolved) and outcome.outcome == RESOLVED:
                there = conflict.theirs or conflict.ours
                mode = answer.mode or (there.mode if there else REGULAR[0])
                settled[conflict.path] = Side(mode, merger.merging.write_blob(answer.content))
        outcomes.append(outcome)
    return settled, outcomes


def _is_mergeable(conflict: Conflict) -> bool:
    return conflict.kind in _TEXT and is_text(conflict)


def _judge(outcome: FileOutcome, sides: Sides, answer: Resolved | Declined) -> FileOutcome:
    """What is on record of a file. Whatever the rules say, nothing may be lost."""
    if isinstance(answer, Declined):
        return outcome.replace(why=answer.reason)
    lost = loss.check(sides, answer.content, answer.covers)
    if lost:
        return outcome.replace(why=f"{plural(len(lost), 'line')} would be lost: {lost[0].line!r}")
    hunks = tuple(hunk.as_dict() | {"covers": [cover.as_dict() for cover in hunk.covers]} for hunk in answer.hunks)
    why = "; ".join(dict.fromkeys(hunk.why for hunk in answer.hunks)) or "no conflicts"
    return outcome.replace(outcome=RESOLVED, why=why, hunks=hunks)


def _settle(merger: Merger, case: Case, settled: Mapping[str, Side], outcomes: Sequence[FileOutcome]) -> Case:
    case = case.note(*outcomes)
    if not settled:
        return case
    left = tuple(conflict for conflict in case.conflicts if conflict.path not in settled)
    return case.replace(tree=merger.merging.replace_files(case.tree, settled), conflicts=left)
