"""The mechanical tier: what the rules prove, file by file. What they decline is left for the tiers above."""

from __future__ import annotations

from rookery.merge import case as cases
from rookery.merge.model import DECLINED, MECHANICAL, RESOLVED, FileOutcome
from rookery.merge.tiers import lockfiles
from rookery.vcs.git_merging import ADD_ADD, CONTENT, REGULAR, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rookery.merge.case import Case
    from rookery.merge.desk import Desk
    from rookery.vcs.git_merging import Conflict

NAME = MECHANICAL
_TEXT = (CONTENT, ADD_ADD)
"""What rules on text may settle. An edit against a deletion is never among it: one of the two is somebody's intent."""


def attempt(desk: Desk, case: Case, beat: Callable[[], None]) -> Case:
    """Settle every file that the rules can settle."""
    settled: dict[str, Side] = {}
    outcomes, locks = [], []
    for conflict in case.conflicts:
        if _is_lock(conflict):
            locks.append(conflict)
            continue
        made, outcome = _resolve(desk, case, conflict)
        outcomes.append(outcome)
        if made is not None:
            settled[conflict.path] = made
    case = _settle(desk, case, settled).note(*outcomes)
    others = [each for each in case.conflicts if each not in locks]
    if locks and not others:  # a lock file is made from manifests, so these come first
        anew, told = lockfiles.regenerate(desk, case, locks, beat)
        case = _settle(desk, case, anew).note(*told)
    return case


def predict(desk: Desk, case: Case, conflict: Conflict) -> bool:
    """True if the rules would settle the file; a lock file may be made anew, if its program is there."""
    if _is_lock(conflict):
        return lockfiles.can_regenerate(conflict.path)
    return _resolve(desk, case, conflict)[0] is not None


def _is_lock(conflict: Conflict) -> bool:
    return conflict.kind in _TEXT and cases.lockfile_of(conflict.path) is not None


def _resolve(desk: Desk, case: Case, conflict: Conflict) -> tuple[Side | None, FileOutcome]:
    from rookery.merge.resolve.model import Resolved

    found = FileOutcome(conflict.path, conflict.kind, NAME, DECLINED, "")
    sides = [side for side in (conflict.base, conflict.ours, conflict.theirs) if side is not None]
    if conflict.kind not in _TEXT or any(side.mode not in REGULAR for side in sides):
        return None, found.replace(why=f"a conflict of kind {conflict.kind} is not for rules on text")
    given = cases.sides_of(desk, case, conflict)
    answer = cases.resolve_mechanically(desk, given)
    if not isinstance(answer, Resolved):
        return None, found.replace(why=answer.reason)
    lost = cases.losses_of(given, answer.content, answer.covers)
    if lost:
        return None, found.replace(why=f"{len(lost)} lines would be lost: {lost[0].line!r}")
    mode = answer.mode or (conflict.theirs or conflict.ours or sides[0]).mode
    hunks = tuple(cases.shown_hunk(hunk) for hunk in answer.hunks)
    why = "; ".join(dict.fromkeys(hunk.why for hunk in answer.hunks)) or "both sides go together"
    made = Side(mode, desk.merging.write_blob(answer.content))
    return made, found.replace(outcome=RESOLVED, why=why, hunks=hunks)


def _settle(desk: Desk, case: Case, settled: Mapping[str, Side]) -> Case:
    if not settled:
        return case
    left = tuple(each for each in case.conflicts if each.path not in settled)
    return case.replace(tree=desk.merging.replace_files(case.tree, settled), conflicts=left)
