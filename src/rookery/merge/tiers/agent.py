"""The agent tier: one prompt to an agent program, with both sides of every conflict and what became of them before."""

from __future__ import annotations

from collections.abc import Callable

from rookery.merge.desk import Desk
from rookery.merge.model import AGENT, DECLINED, RESOLVED, FileOutcome
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case
from rookery.merge.tiers.oneshot import Failed
from rookery.vcs.git.merge_tree import Conflict

NAME = AGENT
_MOST_PATCH = 60_000


def attempt(desk: Desk, case: Case, beat: Callable[[], None]) -> Case:
    """Let an agent settle what is left; all of it, or nothing."""
    conflicts = case.conflicts
    commit = desk.merging.commit(case.tree, [case.onto, case.entry.tip], "rook: a merge with conflicts in it")
    answer = oneshot.ask(desk, case, NAME, commit, _prompt(desk, case), beat)
    if isinstance(answer, Failed):
        return case.note(*(FileOutcome(each.path, each.kind, NAME, DECLINED, answer.reason) for each in conflicts))
    # What it touched beyond the conflicts is held against both sides as well.
    beyond = set(desk.merging.changed_paths([(commit, answer.tree)])[0]) - {each.path for each in conflicts}
    others = [_as_conflict(desk, case, path) for path in sorted(beyond)]
    outcomes = oneshot.verify(desk, case, NAME, answer, [*conflicts, *others])
    case = case.note(*outcomes)
    if any(each.outcome != RESOLVED for each in outcomes):
        return case
    return case.replace(tree=answer.tree, conflicts=())


def _as_conflict(desk: Desk, case: Case, path: str) -> Conflict:
    """What each side has at a path that does not conflict."""
    merging = desk.merging
    parted = merging.fork_point(case.onto, case.entry.tip)
    sides = [None if at is None else merging.files(at, [path]).get(path) for at in (parted, case.onto, case.entry.tip)]
    return Conflict(path, "touched", *sides)


def _prompt(desk: Desk, case: Case) -> str:
    about = oneshot.context(desk, case)
    entry = case.entry
    parted = desk.merging.fork_point(case.onto, entry.tip) or case.onto
    paths = [each.path for each in case.conflicts]
    listed = "\n".join(f"- {each.path} ({each.kind})" for each in case.conflicts)
    theirs = desk.merging.patch(parted, entry.tip, paths)
    ours = desk.merging.patch(parted, case.onto, paths)
    parts = [
        f"The branch {entry.branch} is to be merged into {entry.base}. These files conflict, with git's markers in "
        f"them (first {entry.base}, then the branch):\n{listed}",
        f"Resolve them. What the branch is for: {oneshot.fenced(about['title'], 500)}",
        oneshot.fenced(about["description"], 8_000) if about["description"] else "",
        f"What the branch changed in these files:\n{oneshot.fenced(theirs, _MOST_PATCH)}",
        f"What {entry.base} changed in them meanwhile:\n{oneshot.fenced(ours, _MOST_PATCH)}",
        oneshot.past(desk, paths),
        case.notes,
        oneshot.contract(),
    ]
    return "\n\n".join(part for part in parts if part)
