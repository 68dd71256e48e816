"""How learnings look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Table, text
from rookery.tasks.model import Learning


def one(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """A learning at length."""
    fields: dict[str, Cell] = {
        "id": (learning.id, "id"),
        "task": (learning.task_id, "id"),
        "source": (learning.source_task_id, "id"),
        "at": learning.created_at,
    }
    return [Fields(fields), text(learning.content, indent=2)]


def table(learnings: list[Learning], _values: dict[str, Any]) -> list[Block]:
    """Learnings in a table."""
    rows = [
        ((learning.id, "id"), (learning.source_task_id or learning.task_id, "dim"), one_line(learning.content))
        for learning in learnings
    ]
    return [Table(("id", "from", "learning"), rows, stretch=2, empty="No learnings.")]


def deleted(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted {learning.id}: {one_line(learning.content, 80)}")]
