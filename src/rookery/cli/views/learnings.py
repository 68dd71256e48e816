"""How learnings look."""

from __future__ import annotations

from typing import Any

from rookery.base.ids import handle
from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Table, moment, named, text
from rookery.tasks.model import Learning


def one(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """A learning at length."""
    fields: dict[str, Cell] = {
        "id": named(learning.id),
        "task": named(learning.task_id),
        "learned in": named(learning.source_task_id),
        "added": moment(learning.created_at),
    }
    return [Fields(fields), text(learning.content, indent=2)]


def table(learnings: list[Learning], _values: dict[str, Any]) -> list[Block]:
    """Learnings in a table."""
    rows = [
        (named(learning.id), (handle(learning.source_task_id or learning.task_id), "dim"), one_line(learning.content))
        for learning in learnings
    ]
    return [Table(("id", "task", "learning"), rows, empty="No learnings.")]


def deleted(learning: Learning, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted {handle(learning.id)}: {one_line(learning.content, 80)}")]
