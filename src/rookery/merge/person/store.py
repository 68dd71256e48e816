"""The table of conflicts that are open for a person."""

from __future__ import annotations

import json
from typing import Any

from rookery.db.database import Database
from rookery.db.dialect import marks
from rookery.merge.person.model import OpenConflict

_COLUMNS = ", ".join(OpenConflict.field_names())


def find(db: Database, merge_id: str) -> OpenConflict | None:
    """The open conflict of an entry, if there is one."""
    return next(iter(_rows(db, "merge_id = ?", merge_id)), None)


def all_open(db: Database) -> list[OpenConflict]:
    """All of them, the oldest first."""
    return _rows(db, "1 = 1")


def insert(db: Database, conflict: OpenConflict) -> None:
    """Record that a conflict is about to be opened; an earlier one of the same entry is replaced."""
    values = conflict.as_dict() | {"files": json.dumps(conflict.files), "was": json.dumps(conflict.was)}
    db.execute("DELETE FROM open_conflicts WHERE merge_id = ?", (conflict.merge_id,))
    db.execute(f"INSERT INTO open_conflicts ({_COLUMNS}) VALUES ({marks(len(values))})", tuple(values.values()))


def update(db: Database, merge_id: str, **columns: str | None) -> None:
    """Change some columns."""
    names = ", ".join(f"{name} = ?" for name in columns)
    db.execute(f"UPDATE open_conflicts SET {names} WHERE merge_id = ?", (*columns.values(), merge_id))


def forget(db: Database, merge_id: str) -> None:
    """Its worktree is gone."""
    db.execute("DELETE FROM open_conflicts WHERE merge_id = ?", (merge_id,))


def _rows(db: Database, condition: str, *values: Any) -> list[OpenConflict]:
    rows = db.all(f"SELECT {_COLUMNS} FROM open_conflicts WHERE {condition} ORDER BY opened_at, merge_id", values)
    conflicts = (OpenConflict(*row) for row in rows)
    return [
        conflict.replace(files=tuple(json.loads(str(conflict.files))), was=json.loads(str(conflict.was)))
        for conflict in conflicts
    ]
