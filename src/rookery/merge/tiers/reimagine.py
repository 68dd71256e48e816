"""The reimagine tier: an agent does the branch's change again, on the base as it is now."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.model import REIMAGINE
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import Conflict

_MOST_PATCH = 120_000


def attempt(merger: Merger, case: Case) -> Case:
    """Let an agent do the change again; every file that the branch touched is compared with both sides."""
    merging = merger.merging
    fork = merging.fork_point(case.onto, case.entry.tip) or case.onto

    def touched(tree: str) -> list[Conflict]:
        """Every file that the branch changed, or that the agent changed now."""
        changed = merging.changed_paths([(fork, case.entry.tip), (case.onto, tree)])
        return oneshot.conflicts_at(merger, case, {*changed[0], *changed[1]})

    entry, patch = case.entry, merging.patch(fork, case.entry.tip)
    prompt = oneshot.prompt_of(
        merger,
        case,
        f"The branch {entry.branch} was made on an older {entry.base}, and can no longer be merged: it conflicts in\n"
        f"{oneshot.listed(case)}\n\nThis folder holds {entry.base} as it is now. Do the branch's change again, here."
        "\n\n",
        f"What the branch changed:\n{oneshot.fenced(patch, _MOST_PATCH)}",
    )
    return oneshot.attempt(merger, case, REIMAGINE, case.onto, prompt, touched)
