"""What a soak prints at its end: the numbers, what is known, and what is wrong."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dev.soak.checks.known import Known
from dev.soak.checks.model import Violation
from dev.soak.site import Call

_LONG = ("sling", "merge", "stop", "doctor", "worktree", "daemon", "init")
"""Calls that do work in a process of their own; all others are short."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What happened, by the database."""

    turns: dict[str, int]
    sessions: dict[str, int]
    landings: int
    mails: int
    events: int


def count(db: sqlite3.Connection) -> Numbers:
    """Count what happened."""
    return Numbers(
        dict(db.execute("SELECT state, count(*) FROM turns GROUP BY state")),
        dict(db.execute("SELECT coalesce(outcome, state), count(*) FROM sessions GROUP BY 1")),
        db.execute("SELECT count(*) FROM merges WHERE state = 'landed'").fetchone()[0],
        db.execute("SELECT count(*) FROM messages").fetchone()[0],
        db.execute("SELECT count(*) FROM events").fetchone()[0],
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed; 0 if there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def show_latency(calls: Iterable[Call]) -> list[tuple[str, str]]:
    """How long calls took, short and long ones apart; those that were killed say nothing."""
    rows = []
    ended = [call for call in calls if not call.is_killed and not call.is_hung]
    for name, is_long in (("short calls", False), ("long calls", True)):
        seconds = [call.seconds for call in ended if (call.words[0] in _LONG) == is_long]
        text = f"{len(seconds)}, p50 {percentile(seconds, 0.5):.3f} s, p95 {percentile(seconds, 0.95):.3f} s"
        rows.append((name, text))
    return rows


def show_counts(counts: Counter[str] | dict[str, int]) -> str:
    """`12 git, 3 daemon`, the most frequent first."""
    return ", ".join(f"{number} {name}" for name, number in Counter(counts).most_common()) or "none"


def print_table(rows: Iterable[tuple[str, str]]) -> None:
    """Two columns."""
    for name, text in rows:
        print(f"{name:<14}{text}")


def print_violations(fresh: Sequence[Violation], known: Sequence[tuple[Known, Violation]]) -> None:
    """What was found: known faults by name with their reason, everything else in full."""
    by_fault: dict[str, list[tuple[Known, Violation]]] = {}
    for fault, violation in known:
        by_fault.setdefault(fault.name, []).append((fault, violation))
    for name, pairs in by_fault.items():
        print(f"known: {name}, {len(pairs)} times: {pairs[0][0].reason}")
        print(f"       such as: {pairs[0][1].text}")
    for violation in fresh:
        print(f"VIOLATION {violation.check}: {violation.text}")
