"""The agent tier: one prompt to an agent program, with both sides of every conflict and earlier outcomes."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.model import AGENT
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import Conflict

_MOST_PATCH = 60_000


def attempt(merger: Merger, case: Case) -> Case:
    """Let an agent settle what is left; all of it, or nothing."""
    commit = merger.merging.commit(case.tree, [case.onto, case.entry.tip], "rook: a merge with conflicts in it")

    def touched(tree: str) -> list[Conflict]:
        """The conflicts, and the other files that it changed: they too are compared with both sides."""
        beyond = set(merger.merging.changed_paths([(commit, tree)])[0]) - {conflict.path for conflict in case.conflicts}
        return [*case.conflicts, *oneshot.conflicts_at(merger, case, beyond)]

    return oneshot.attempt(merger, case, AGENT, commit, _prompt(merger, case), touched)


def _prompt(merger: Merger, case: Case) -> str:
    entry = case.entry
    fork = merger.merging.fork_point(case.onto, entry.tip) or case.onto
    paths = [conflict.path for conflict in case.conflicts]
    theirs, ours = (merger.merging.patch(fork, tip, paths) for tip in (entry.tip, case.onto))
    return oneshot.prompt_of(
        merger,
        case,
        f"The branch {entry.branch} is being merged into {entry.base}. These files conflict, with git's markers in "
        f"them (first {entry.base}, then the branch):\n{oneshot.listed(case)}\n\nResolve them. ",
        f"What the branch changed in these files:\n{oneshot.fenced(theirs, _MOST_PATCH)}",
        f"What {entry.base} changed in them meanwhile:\n{oneshot.fenced(ours, _MOST_PATCH)}",
    )
