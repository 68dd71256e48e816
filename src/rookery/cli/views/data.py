"""How exports and imports look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.text import plural
from rookery.cli.document import Block, text
from rookery.tasks.transfer import Exported, Imported


def exported(result: Exported, _values: dict[str, Any]) -> list[Block]:
    """What was written."""
    return [text(f"wrote {_counted(result)} to {result.path}")]


def imported(result: Imported, _values: dict[str, Any]) -> Iterator[Block]:
    """What was read."""
    yield text(f"read {_counted(result)} from {result.path}")
    if result.backup:
        yield text(f"deleted {plural(result.deleted, 'task')} first; the backup is {result.backup}", "dim")


def _counted(result: Exported | Imported) -> str:
    return f"{plural(result.tasks, 'task')} and {plural(result.learnings, 'learning')}"
