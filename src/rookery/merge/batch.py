"""How many branches are gated together, decided purely.

A gate over a batch says of all of them at once that they are good, and of one bad one among them only that there is
one. So batches are large while little fails, about one over the square root of the failure rate, and small when much
does. A red batch is halved: if its left half is green, its right half is red without another run.
"""

from __future__ import annotations

import math

WINDOW = 40
"""How many of the last landings count for the failure rate."""
SEASON = 20
"""After how many the rate is asked again: one red branch says little, and a size that hunts it costs runs."""
_PRIOR_RUNS, _PRIOR_FAILURES = 16, 1.0
"""What is assumed before there is a history: one in sixteen fails."""


def failure_rate(gated: int, failed: int) -> float:
    """How often a branch fails, from the last ones and what is assumed before."""
    return (failed + _PRIOR_FAILURES) / (gated + _PRIOR_RUNS)


def batch_size(gated: int, failed: int, most: int) -> int:
    """How many branches to gate together."""
    return max(1, min(most, round(1 / math.sqrt(failure_rate(gated, failed)))))


def halves(count: int) -> int:
    """Where to cut a red batch: how many belong to its left half."""
    return max(1, count // 2)
