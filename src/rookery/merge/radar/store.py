"""The tables of the radar: what commits changed, where they conflict, and the overlaps that agents were warned of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rookery.db.database import Database

Pair = tuple[str, str]
"""Two commits, the smaller one first."""


def files(db: Database, base: str, tip: str) -> list[str] | None:
    """What a commit changed since it parted from a base; None if that is not known yet."""
    text = db.value("SELECT files FROM radar_files WHERE base = ? AND tip = ?", (base, tip))
    return None if text is None else list(json.loads(text))


def keep_files(db: Database, base: str, files_by_tip: Mapping[str, Sequence[str]]) -> None:
    """Keep what commits changed since they parted from a base."""
    rows = [(base, tip, json.dumps(paths)) for tip, paths in files_by_tip.items()]
    db.execute_many("INSERT OR IGNORE INTO radar_files (base, tip, files) VALUES (?, ?, ?)", rows)


def conflicts(db: Database, pair: Pair) -> tuple[str, ...] | None:
    """In which files two commits conflict; None if that is not known yet."""
    text = db.value("SELECT conflicts FROM radar_pairs WHERE one = ? AND other = ?", pair)
    return None if text is None else tuple(json.loads(text))


def keep_conflicts(db: Database, paths_by_pair: Mapping[Pair, Sequence[str]]) -> None:
    """Keep in which files pairs of commits conflict."""
    rows = [(*pair, json.dumps(paths)) for pair, paths in paths_by_pair.items()]
    db.execute_many("INSERT OR IGNORE INTO radar_pairs (one, other, conflicts) VALUES (?, ?, ?)", rows)


def is_warned(db: Database, one: str, other: str, path: str) -> bool:
    """True if the agents of two branches were warned of this file."""
    row = (one, other, path)
    return db.value("SELECT 1 FROM radar_warnings WHERE one = ? AND other = ? AND path = ?", row) is not None


def keep_warnings(db: Database, one: str, other: str, paths: Sequence[str], at: str) -> None:
    """The agents of two branches are warned of these files."""
    rows = [(one, other, path, at) for path in paths]
    db.execute_many("INSERT OR IGNORE INTO radar_warnings (one, other, path, at) VALUES (?, ?, ?, ?)", rows)
