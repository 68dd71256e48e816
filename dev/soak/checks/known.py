"""Faults that are known and not yet repaired: what a soak finds of them is counted and shown, and does not fail it.

Take an entry out when its fault is repaired; from then on the soak fails on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dev.soak.checks.model import Violation


@dataclass(frozen=True, slots=True)
class Known:
    """A fault: how a violation is recognised as one of it, and why it is tolerated."""

    name: str
    check: str
    pattern: str
    reason: str

    def fits(self, violation: Violation) -> bool:
        """True if the violation is one of this fault."""
        return violation.check == self.check and re.search(self.pattern, violation.text) is not None


KNOWN: tuple[Known, ...] = (
    Known(
        "killed-gc-leaves-lock",
        "leftovers",
        r"^lock file \.git/(worktrees/[^/ ]+/)?gc\.log\.lock$",
        "a `git gc --auto` that an agent's own git started and that is killed leaves the lock of its log; it stops no "
        "other git, and goes with the worktree",
    ),
)
"""A full disk that ends working agents as `crashed`, and ended workers that stay zombies for 30 s, need no entry: a
crashed agent's task is given to another one, and zombies are no leftovers."""


def sort_out(
    violations: list[Violation], faults: Sequence[Known] = KNOWN
) -> tuple[list[Violation], list[tuple[Known, Violation]]]:
    """What is new, and what is known with the fault that it is one of."""
    fresh: list[Violation] = []
    known: list[tuple[Known, Violation]] = []
    for violation in violations:
        fault = next((known_fault for known_fault in faults if known_fault.fits(violation)), None)
        if fault is None:
            fresh.append(violation)
        else:
            known.append((fault, violation))
    return fresh, known
