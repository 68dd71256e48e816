"""The agent tier: one prompt to an agent program, with both sides of every conflict and what became of them before."""

from __future__ import annotations

from collections.abc import Callable

from rookery.merge.merger import Merger
from rookery.merge.model import AGENT, DECLINED, RESOLVED, FileOutcome
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case
from rookery.merge.tiers.oneshot import Failed
from rookery.vcs.git.merge_tree import Conflict

NAME = AGENT
_MOST_PATCH = 60_000


def attempt(merger: Merger, case: Case, beat: Callable[[], None]) -> Case:
    """Let an agent settle what is left; all of it, or nothing."""
    conflicts = case.conflicts
    commit = merger.merging.commit(case.tree, [case.onto, case.entry.tip], "rook: a merge with conflicts in it")
    answer = oneshot.ask(merger, case, NAME, commit, _prompt(merger, case), beat)
    if isinstance(answer, Failed):
        return case.note(*(FileOutcome(each.path, each.kind, NAME, DECLINED, answer.reason) for each in conflicts))
    # What it touched beyond the conflicts is held against both sides as well.
    beyond = set(merger.merging.changed_paths([(commit, answer.tree)])[0]) - {each.path for each in conflicts}
    others = [_as_conflict(merger, case, path) for path in sorted(beyond)]
    outcomes = oneshot.verify(merger, case, NAME, answer, [*conflicts, *others])
    case = case.note(*outcomes)
    if any(each.outcome != RESOLVED for each in outcomes):
        return case
    return case.replace(tree=answer.tree, conflicts=())


def _as_conflict(merger: Merger, case: Case, path: str) -> Conflict:
    """What each side has at a path that does not conflict."""
    merging = merger.merging
    parted = merging.fork_point(case.onto, case.entry.tip)
    sides = [None if at is None else merging.files(at, [path]).get(path) for at in (parted, case.onto, case.entry.tip)]
    return Conflict(path, "touched", *sides)


def _prompt(merger: Merger, case: Case) -> str:
    about = oneshot.context(merger, case)
    entry = case.entry
    parted = merger.merging.fork_point(case.onto, entry.tip) or case.onto
    paths = [each.path for each in case.conflicts]
    listed = "\n".join(f"- {each.path} ({each.kind})" for each in case.conflicts)
    theirs = merger.merging.patch(parted, entry.tip, paths)
    ours = merger.merging.patch(parted, case.onto, paths)
    parts = [
        f"The branch {entry.branch} is to be merged into {entry.base}. These files conflict, with git's markers in "
        f"them (first {entry.base}, then the branch):\n{listed}",
        f"Resolve them. What the branch is for: {oneshot.fenced(about['title'], 500)}",
        oneshot.fenced(about["description"], 8_000) if about["description"] else "",
        f"What the branch changed in these files:\n{oneshot.fenced(theirs, _MOST_PATCH)}",
        f"What {entry.base} changed in them meanwhile:\n{oneshot.fenced(ours, _MOST_PATCH)}",
        oneshot.past(merger, paths),
        case.notes,
        oneshot.contract(),
    ]
    return "\n\n".join(part for part in parts if part)
