"""How events and tool calls look: a line each."""

from __future__ import annotations

import json
from typing import Any

from rookery.base.ids import with_handles
from rookery.base.text import in_words, one_line
from rookery.cli.document import Block, Paragraph, clock, line
from rookery.events.model import Event
from rookery.status.activity import Activity

_DETAIL_WIDTH = 120
_TEXT_WIDTH = 160
_INDENT = 10
_UNINTERESTING = ("updated_at",)


def row(result: Event | Activity, _values: dict[str, Any]) -> list[Block]:
    """When, who, what, and to what."""
    if isinstance(result, Activity):
        style = "bad" if result.is_error else ""
        shown = line(
            (clock(result.at), "dim"),
            (f"  {result.agent:<14}", "note"),
            (f" {result.kind:<15} ", style),
            (with_handles(one_line(result.text, _TEXT_WIDTH)), style),
            (f"  {result.millis} ms" if result.millis else "", "dim"),
        )
        why = [(with_handles(one_line(row, _TEXT_WIDTH)), "bad") for row in result.why.splitlines()]
        return [Paragraph([shown], hang=_INDENT), *([Paragraph(why, indent=_INDENT)] if why else [])]
    shown = line(
        (clock(result.at), "dim"),
        f"  {result.type:<18} ",
        (with_handles(result.subject), "id"),
        (f"  {result.actor}  ", "note"),
        (_detail(result.data), "dim"),
    )
    return [Paragraph([shown], hang=_INDENT)]


def _detail(data: dict[str, Any]) -> str:
    fields = data.get("set") or data.get("task") or data.get("learning") or data
    if "title" in fields and "id" in fields:
        return one_line(str(fields["title"]), _DETAIL_WIDTH)
    if "content" in fields:
        return one_line(str(fields["content"]), _DETAIL_WIDTH)
    shown = {name: value for name, value in fields.items() if name not in _UNINTERESTING and value is not None}
    return one_line(", ".join(f"{name}={_short(name, value)}" for name, value in shown.items()), _DETAIL_WIDTH)


def _short(name: str, value: Any) -> str:
    if name == "state" and isinstance(value, str):
        return in_words(value)
    return with_handles(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
