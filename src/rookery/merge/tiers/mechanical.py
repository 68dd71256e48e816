"""The mechanical tier: what the rules prove, file by file. What they decline is left for the tiers above."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rookery.base.lockfiles import lockfile_of
from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, MECHANICAL, RESOLVED, FileOutcome
from rookery.merge.resolve import loss
from rookery.merge.resolve.model import Declined, Resolved, Sides
from rookery.merge.tiers import case as cases
from rookery.merge.tiers import lockfiles
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import ADD_ADD, CONTENT, REGULAR, Conflict, Side

NAME = MECHANICAL
_TEXT = (CONTENT, ADD_ADD)
"""What rules on text may settle. An edit against a deletion is never among it: one of the two is somebody's intent."""


def attempt(merger: Merger, case: Case, beat: Callable[[], None]) -> Case:
    """Settle every file that the rules can settle."""
    locks = [each for each in case.conflicts if _is_lock(each)]
    settled, outcomes = _resolve(merger, case, [each for each in case.conflicts if each not in locks])
    case = _settle(merger, case, settled).note(*outcomes)
    others = [each for each in case.conflicts if each not in locks]
    if locks and not others:  # a lock file is made from manifests, so these come first
        again, told = lockfiles.regenerate(merger, case, locks, beat)
        case = _settle(merger, case, again).note(*told)
    return case


def predict(merger: Merger, case: Case) -> set[str]:
    """The files that the rules would settle, and the lock files whose programs are there to make them again."""
    locks = [each for each in case.conflicts if _is_lock(each)]
    settled, _ = _resolve(merger, case, [each for each in case.conflicts if each not in locks])
    return settled.keys() | {each.path for each in locks if lockfiles.can_regenerate(merger, each.path)}


def _is_lock(conflict: Conflict) -> bool:
    return conflict.kind in _TEXT and lockfile_of(conflict.path) is not None


def _resolve(merger: Merger, case: Case, conflicts: Sequence[Conflict]) -> tuple[dict[str, Side], list[FileOutcome]]:
    """What the rules settle, and what is to be said of every file."""
    settled: dict[str, Side] = {}
    outcomes = [FileOutcome(each.path, each.kind, NAME, DECLINED, _no_text(each)) for each in conflicts]
    text = [each for each in conflicts if not _no_text(each)]
    given = [cases.sides_of(merger, case, each) for each in text]
    for conflict, sides, answer in zip(text, given, cases.resolve_mechanically(merger, given), strict=True):
        made, outcome = _told(merger, conflict, sides, answer)
        outcomes[conflicts.index(conflict)] = outcome
        if made is not None:
            settled[conflict.path] = made
    return settled, outcomes


def _no_text(conflict: Conflict) -> str:
    """Why a conflict is not for rules on text, if it is not."""
    sides = [side for side in (conflict.base, conflict.ours, conflict.theirs) if side is not None]
    if conflict.kind in _TEXT and all(side.mode in REGULAR for side in sides):
        return ""
    return f"a conflict of kind {conflict.kind} is not for rules on text"


def _told(
    merger: Merger, conflict: Conflict, sides: Sides, answer: Resolved | Declined
) -> tuple[Side | None, FileOutcome]:
    found = FileOutcome(conflict.path, conflict.kind, NAME, DECLINED, "")
    if not isinstance(answer, Resolved):
        return None, found.replace(why=answer.reason)
    lost = loss.check(sides, answer.content, answer.covers)
    if lost:
        return None, found.replace(why=f"{len(lost)} lines would be lost: {lost[0].line!r}")
    there = conflict.theirs or conflict.ours
    mode = answer.mode or (there.mode if there else REGULAR[0])
    hunks = tuple(cases.shown_hunk(hunk) for hunk in answer.hunks)
    why = "; ".join(dict.fromkeys(hunk.why for hunk in answer.hunks)) or "both sides go together"
    made = Side(mode, merger.merging.write_blob(answer.content))
    return made, found.replace(outcome=RESOLVED, why=why, hunks=hunks)


def _settle(merger: Merger, case: Case, settled: Mapping[str, Side]) -> Case:
    if not settled:
        return case
    left = tuple(each for each in case.conflicts if each.path not in settled)
    return case.replace(tree=merger.merging.replace_files(case.tree, settled), conflicts=left)
