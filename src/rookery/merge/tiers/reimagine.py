"""The reimagine tier: an agent does the branch's change again, on the base as it is now."""

from __future__ import annotations

from collections.abc import Callable

from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, REIMAGINE, RESOLVED, FileOutcome
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case
from rookery.merge.tiers.oneshot import Failed
from rookery.vcs.git.merge_tree import Conflict

NAME = REIMAGINE
_MOST_PATCH = 120_000


def attempt(merger: Merger, case: Case, beat: Callable[[], None]) -> Case:
    """Let an agent do the change anew; every file that the branch touched is held against both sides."""
    answer = oneshot.ask(merger, case, NAME, case.onto, _prompt(merger, case), beat)
    if isinstance(answer, Failed):
        return case.note(*(FileOutcome(each.path, each.kind, NAME, DECLINED, answer.reason) for each in case.conflicts))
    touched = _touched(merger, case, answer.tree)
    outcomes = oneshot.verify(merger, case, NAME, answer, touched)
    case = case.note(*outcomes)
    if any(each.outcome != RESOLVED for each in outcomes):
        return case
    return case.replace(tree=answer.tree, conflicts=())


def _touched(merger: Merger, case: Case, tree: str) -> list[Conflict]:
    """Every file that the branch changed, or that the agent changed now."""
    merging = merger.merging
    parted = merging.fork_point(case.onto, case.entry.tip) or case.onto
    changed = merging.changed_paths([(parted, case.entry.tip), (case.onto, tree)])
    kinds = {each.path: each.kind for each in case.conflicts}
    before, ours, theirs = (merging.files(at) for at in (parted, case.onto, case.entry.tip))
    return [
        Conflict(path, kinds.get(path, "touched"), before.get(path), ours.get(path), theirs.get(path))
        for path in sorted({*changed[0], *changed[1]})
    ]


def _prompt(merger: Merger, case: Case) -> str:
    about = oneshot.context(merger, case)
    entry = case.entry
    parted = merger.merging.fork_point(case.onto, entry.tip) or case.onto
    listed = "\n".join(f"- {each.path} ({each.kind})" for each in case.conflicts)
    parts = [
        f"The branch {entry.branch} was made on an older {entry.base}, and can no longer be merged: it conflicts in\n"
        f"{listed}\n\nThis folder holds {entry.base} as it is now. Do the branch's change again, here.",
        f"What the branch is for: {oneshot.fenced(about['title'], 500)}",
        oneshot.fenced(about["description"], 8_000) if about["description"] else "",
        f"What the branch changed:\n{oneshot.fenced(merger.merging.patch(parted, entry.tip), _MOST_PATCH)}",
        oneshot.past(merger, [each.path for each in case.conflicts]),
        case.notes,
        oneshot.contract(),
    ]
    return "\n\n".join(part for part in parts if part)
