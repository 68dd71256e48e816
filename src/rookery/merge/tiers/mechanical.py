"""The mechanical tier: what the rules prove, file by file. What they decline is left for the tiers above."""

from __future__ import annotations

import os

from rookery.base.errors import ProgramFailed
from rookery.base.process import run
from rookery.merge import case as cases
from rookery.merge import scratch
from rookery.merge.model import DECLINED, MECHANICAL, RESOLVED, FileOutcome
from rookery.vcs.git_merging import ADD_ADD, CONTENT, REGULAR, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rookery.merge.case import Case
    from rookery.merge.desk import Desk
    from rookery.vcs.git_merging import Conflict

NAME = MECHANICAL
_LOCK_TIMEOUT = 600.0
_TEXT = (CONTENT, ADD_ADD)
"""What rules on text may settle. An edit against a deletion is never among it: one of the two is somebody's intent."""


def attempt(desk: Desk, case: Case, _beat: Callable[[], None]) -> Case:
    """Settle every file that the rules can settle."""
    settled: dict[str, Side | None] = {}
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
        case = _regenerate(desk, case, locks)
    return case


def predict(desk: Desk, case: Case, conflict: Conflict) -> bool:
    """True if the rules would settle the file; a lock file may be made anew, if its program is there."""
    return _is_lock(conflict) or _resolve(desk, case, conflict)[0] is not None


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


def _settle(desk: Desk, case: Case, settled: dict[str, Side | None]) -> Case:
    if not settled:
        return case
    left = tuple(each for each in case.conflicts if each.path not in settled)
    return case.replace(tree=desk.merging.replace_files(case.tree, settled), conflicts=left)


def _regenerate(desk: Desk, case: Case, locks: list[Conflict]) -> Case:
    """Let the programs that own lock files write them anew, in a scratch folder with everything else settled."""
    # Where the two sides conflict, the base's own file is what the program begins from.
    start = desk.merging.replace_files(case.tree, {each.path: each.ours for each in locks})
    commit = desk.merging.commit(start, [case.onto], "rook: to make lock files anew")
    settled: dict[str, Side | None] = {}
    outcomes = []
    name = f"lock-{case.entry.id}"
    with scratch.open_scratch(desk, name, commit, base=case.entry.base, at=case.onto) as place:
        for conflict in locks:
            outcome, content = _run_tool(conflict, place)
            outcomes.append(outcome)
            if content is not None:
                settled[conflict.path] = Side(REGULAR[0], desk.merging.write_blob(content))
    return _settle(desk, case, settled).note(*outcomes)


def _run_tool(conflict: Conflict, place: scratch.Scratch) -> tuple[FileOutcome, bytes | None]:
    lock = cases.lockfile_of(conflict.path)
    assert lock is not None  # noqa: S101 - it is why the path came here
    found = FileOutcome(conflict.path, conflict.kind, NAME, DECLINED, "")
    folder = os.path.join(place.folder, os.path.dirname(conflict.path))
    if not any(os.path.isfile(os.path.join(folder, each)) for each in lock.manifests):
        return found.replace(why=f"nothing to make it from: {' or '.join(lock.manifests)} is not beside it"), None
    shown = " ".join(lock.command)
    try:
        run(lock.command, cwd=folder, env=place.env, timeout=_LOCK_TIMEOUT)
        with open(os.path.join(place.folder, conflict.path), "rb") as file:
            content = file.read()
    except ProgramFailed as error:
        return found.replace(why=f"`{shown}` could not make it anew: {error.message}"), None
    except OSError:
        return found.replace(why=f"`{shown}` did not write it"), None
    return found.replace(outcome=RESOLVED, why=f"made anew by `{shown}`, never merged as text"), content
