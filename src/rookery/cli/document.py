"""What a view is made of. Rich draws it on a terminal; in a pipe it is plain text, and rich is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.base.text import visible

Span = tuple[str, str]
"""Text and its style: one of `STYLES`."""
Line = tuple[Span, ...]

STYLES = {
    "": "",
    "id": "cyan",
    "dim": "bright_black",
    "bold": "bold",
    "title": "bold",
    "good": "green",
    "busy": "yellow",
    "bad": "red",
    "note": "magenta",
}


@dataclass(frozen=True, slots=True)
class Block(Record):
    """Something to show."""


@dataclass(frozen=True, slots=True)
class Paragraph(Block):
    """Lines of text; `indent` columns from the left."""

    lines: tuple[Line, ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Fields(Block):
    """Names and values, aligned."""

    rows: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True)
class Table(Block):
    """Rows under headings. The `stretch` column takes what room is left, and is cut there."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    stretch: int = -1


@dataclass(frozen=True, slots=True)
class Tree(Block):
    """A line and the lines under it."""

    label: Line
    children: tuple[Tree, ...] = ()


def line(*parts: str | Span) -> Line:
    """A line from strings and styled strings, with control characters made visible; empty ones are left out."""
    spans = ((part, "") if isinstance(part, str) else part for part in parts)
    return tuple((visible(content).replace("\n", "\\n"), style) for content, style in spans if content)


def text(content: str, style: str = "", indent: int = 0) -> Paragraph:
    """Text as it is, line by line, with control characters made visible."""
    return Paragraph(tuple(line((row, style)) for row in content.split("\n")), indent)


def next_page(items: Sequence[Any]) -> list[Block]:
    """How to see what comes after a page; nothing after the last one."""
    cursor = getattr(items, "next", None)
    return [text(f"{len(items)} shown; go on with --cursor {cursor}", "dim")] if cursor else []


def unstyled(line: Line) -> str:
    """A line's text alone."""
    return "".join(content for content, style in line if style in STYLES)
