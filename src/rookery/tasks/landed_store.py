"""Our records of what landed, for the question whether a task's work has: read from the tables of the merge queue."""

from __future__ import annotations

from rookery.db.database import Database

_Rows = list[tuple[str, str, str]]


def bases(db: Database, branch: str) -> list[str]:
    """The bases that a branch has landed on by ours, where that was not undone, the last first."""
    rows = db.all("SELECT base FROM merges WHERE branch = ? AND state = 'landed' ORDER BY seq DESC", (branch,))
    return list(dict.fromkeys(row[0] for row in rows))


def landings(db: Database, branch: str, base: str) -> tuple[_Rows, _Rows]:
    """What landed on a base, also if it was undone: candidate, the base before it, and tip.

    First those of one branch, then those of others that git's history does not show, as they were squashed or rebased.
    """
    rows = db.all(
        "SELECT branch, candidate, base_before, tip FROM merges WHERE base = ? AND state IN ('landed', 'undone') "
        "AND candidate IS NOT NULL AND base_before IS NOT NULL AND candidate <> base_before "
        "AND (branch = ? OR strategy <> 'merge')",
        (base, branch),
    )
    own = [tuple(row[1:]) for row in rows if row[0] == branch]
    return own, [tuple(row[1:]) for row in rows if row[0] != branch]
