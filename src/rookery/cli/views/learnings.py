"""How learnings look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Table, line, text
from rookery.tasks.model import Learning


def one(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """A learning at length."""
    rows = [
        ("id", line((learning.id, "id"))),
        ("task", line((learning.task_id, "id"))),
        ("source", line((learning.source_task_id or "", "id"))),
        ("at", line(learning.created_at)),
    ]
    return [Fields(tuple(row for row in rows if row[1])), text(learning.content, indent=2)]


def table(learnings: list[Learning], _values: dict[str, Any]) -> list[Block]:
    """Learnings in a table."""
    if not learnings:
        return [text("No learnings.", "dim")]
    rows = tuple(
        (
            line((learning.id, "id")),
            line((learning.source_task_id or learning.task_id, "dim")),
            line(one_line(learning.content)),
        )
        for learning in learnings
    )
    return [Table(("id", "from", "learning"), rows, stretch=2)]


def deleted(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted {learning.id}: {one_line(learning.content, 80)}")]
