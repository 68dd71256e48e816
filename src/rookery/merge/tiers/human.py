"""The last tier: nothing is guessed. The branch leaves the queue, and whoever is concerned is told what to do."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.model import HUMAN
from rookery.merge.tiers.case import Case

NAME = HUMAN


def hand_over(merger: Merger, case: Case) -> None:
    """Put on record what is left for a person."""
    case.decline(NAME, "no tier that is turned on could settle it").record(merger)
