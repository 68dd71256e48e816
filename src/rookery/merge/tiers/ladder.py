"""Through the tiers, one after the other, until something settles a conflicted branch and the gates agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from rookery.merge.landing.candidate import Clash, commit_tree
from rookery.merge.merger import Merger
from rookery.merge.model import AGENT, MECHANICAL, REIMAGINE
from rookery.merge.tiers import agent, human, mechanical, reimagine
from rookery.merge.tiers.case import Case
from rookery.vcs.git.merge_tree import UNRELATED


class Tier(Protocol):
    """A module that settles conflicts: all of a case, a part of it, or nothing."""

    NAME: str

    def attempt(self, merger: Merger, case: Case, beat: Callable[[], None]) -> Case:
        """The case, with what could be settled settled."""


TIERS: dict[str, Tier] = {MECHANICAL: mechanical, AGENT: agent, REIMAGINE: reimagine}
"""In the order in which they are tried."""


def attempts(merger: Merger, clash: Clash, beat: Callable[[], None]) -> Iterator[Case]:
    """Settled cases, each to be gated; the next one is made only if the one before was turned down.

    A tier that settles a part hands the rest on. One whose whole result the gates turned down is taken back.
    """
    begin = Case(clash.entry, clash.onto, clash.merged.tree, clash.merged.conflicts)
    if any(each.kind == UNRELATED for each in begin.conflicts):
        human.hand_over(merger, begin)
        return
    case = begin
    for name, tier in TIERS.items():
        if name not in merger.ctx.config.merge.tiers:
            continue
        merger.say(f"{clash.entry.branch}: {len(case.conflicts)} files conflict; trying {name}\n")
        case = tier.attempt(merger, case, beat)
        if case.is_settled:
            commit = commit_tree(merger, case.entry, case.onto, case.tree, tier=name)
            yield case.replace(tier=name, commit=commit)
            # Turned down, and on record as such.
            case = begin.replace(notes=f"What the tier {name} made of it did not pass the gates.")
    human.hand_over(merger, case)
