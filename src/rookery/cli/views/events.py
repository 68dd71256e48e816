"""How events look: a line each."""

from __future__ import annotations

import json
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Paragraph, line
from rookery.events.model import Event

_DETAIL_WIDTH = 120
_DULL = ("updated_at",)


def row(event: Event, _values: dict[str, Any]) -> list[Block]:
    """When, who, what, and to what."""
    return [
        Paragraph(
            (
                line(
                    (event.at, "dim"),
                    f"  {event.type:<18} ",
                    (event.subject, "id"),
                    (f"  {event.actor}  ", "note"),
                    (_detail(event.data), "dim"),
                ),
            )
        )
    ]


def _detail(data: dict[str, Any]) -> str:
    told = data.get("set") or data.get("task") or data.get("learning") or data
    if "title" in told and "id" in told:
        return one_line(str(told["title"]), _DETAIL_WIDTH)
    if "content" in told:
        return one_line(str(told["content"]), _DETAIL_WIDTH)
    kept = {name: value for name, value in told.items() if name not in _DULL and value is not None}
    return one_line(", ".join(f"{name}={_short(value)}" for name, value in kept.items()), _DETAIL_WIDTH)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
