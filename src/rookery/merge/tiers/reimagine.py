"""The reimagine tier: an agent does the branch's change again, on the base as it is now."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.model import REIMAGINE
from rookery.merge.tiers import oneshot
from rookery.merge.tiers.case import Case

_MOST_PATCH = 120_000


def attempt(merger: Merger, case: Case) -> Case:
    """Let an agent do the change again; every file that the branch touched is compared with both sides."""
    merging = merger.merging
    fork = merging.fork_point(case.onto, case.entry.tip) or case.onto
    entry, patch = case.entry, merging.patch(fork, case.entry.tip)
    prompt = oneshot.prompt_of(
        merger,
        case,
        f"The branch {entry.branch} was made on an older {entry.base}, and can no longer be merged: it conflicts in\n"
        f"{oneshot.listed(case)}\n\nThis folder holds {entry.base} as it is now. Do the branch's change again, here."
        "\n\n",
        f"What the branch changed:\n{oneshot.fenced(patch, _MOST_PATCH)}",
    )
    changed = merging.changed_paths([(fork, entry.tip)])[0]
    return oneshot.attempt(merger, case, REIMAGINE, case.onto, prompt, paths=changed)
