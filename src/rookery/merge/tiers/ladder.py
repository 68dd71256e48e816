"""Through the tiers, one after the other, until something settles a conflicted branch and the gates agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rookery.base.text import plural
from rookery.merge.landing.candidate import Candidate, commit_case
from rookery.merge.merger import Merger
from rookery.merge.model import AGENT, HUMAN, MECHANICAL, REIMAGINE
from rookery.merge.tiers import agent, mechanical, reimagine
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import UNRELATED


class Tier(Protocol):
    """A module that settles conflicts: all of a case, a part of it, or nothing."""

    def attempt(self, merger: Merger, case: Case) -> Case:
        """The case, with what could be settled settled."""


TIERS: dict[str, Tier] = {MECHANICAL: mechanical, AGENT: agent, REIMAGINE: reimagine}
"""In the order in which they are tried."""


def attempts(merger: Merger, begin: Case) -> Iterator[tuple[Candidate, Case]]:
    """Settled cases for the gates; the next one is made only if the gates turned the one before down.

    A tier that settles a part hands the rest on. If the gates turn a whole result down, the next tier begins without
    it. What no tier settles is left to a person: nothing is guessed.
    """
    case = begin
    allowed = merger.ctx.config.merge.tiers
    if any(conflict.kind == UNRELATED for conflict in begin.conflicts):
        allowed = ()
    for name, tier in TIERS.items():
        if name not in allowed:
            continue
        merger.say(f"{begin.entry.branch}: conflicts in {plural(len(case.conflicts), 'file')}; trying {name}\n")
        case = tier.attempt(merger, case)
        if case.is_settled:
            yield Candidate(case.entry, case.onto, commit_case(merger, case, tier=name), name), case
            # Turned down, and on record as such.
            case = begin.replace(notes=f"The result of the tier {name} did not pass the gates.")
    case.decline(HUMAN, "no tier that is turned on could settle it").record(merger)
