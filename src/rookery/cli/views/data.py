"""How exports and imports look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.cli.document import Block, text
from rookery.tasks.transfer import Exported, Imported


def exported(result: Exported, _values: dict[str, Any]) -> list[Block]:
    """What was written."""
    return [text(f"wrote {result.tasks} tasks and {result.learnings} learnings to {result.path}")]


def imported(result: Imported, _values: dict[str, Any]) -> Iterator[Block]:
    """What was read."""
    yield text(f"read {result.tasks} tasks and {result.learnings} learnings from {result.path}")
    if result.backup:
        yield text(f"deleted {result.deleted} tasks first; they are kept in {result.backup}", "dim")
