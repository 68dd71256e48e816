"""The agent tier: one prompt to an agent program, with both sides of every conflict and earlier outcomes."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.model import AGENT
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case

_MOST_PATCH = 60_000


def attempt(merger: Merger, case: Case) -> Case:
    """Let an agent settle what is left; all of it, or nothing."""
    commit = merger.merging.commit(case.tree, [case.onto, case.entry.tip], "rook: a merge with conflicts in it")
    return oneshot.attempt(merger, case, AGENT, commit, _prompt(merger, case), conflicts=case.conflicts)


def _prompt(merger: Merger, case: Case) -> str:
    entry = case.entry
    fork = merger.merging.fork_point(case.onto, entry.tip) or case.onto
    theirs, ours = (merger.merging.patch(fork, tip, case.paths) for tip in (entry.tip, case.onto))
    return oneshot.prompt_of(
        merger,
        case,
        f"The branch {entry.branch} is being merged into {entry.base}. These files conflict, with git's markers in "
        f"them (first {entry.base}, then the branch):\n{oneshot.listed(case)}\n\nResolve them. ",
        f"What the branch changed in these files:\n{oneshot.fenced(theirs, _MOST_PATCH)}",
        f"What {entry.base} changed in them meanwhile:\n{oneshot.fenced(ours, _MOST_PATCH)}",
    )
