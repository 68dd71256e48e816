"""What a view is made of. Rich draws it on a terminal; in a pipe it is plain text, and rich is not imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.base.clock import time_of_day, when
from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.base.text import one_line, visible
from rookery.config.environ import now, time_zone

SHORT = 12
"""How many characters of a commit are shown."""

Span = tuple[str | None, str]
"""Text and its style: one of `STYLES`."""
Line = list[Span]
Cell = str | int | Span | Line | None
"""What stands in one place: a text, a text with its style, or a line of several."""

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
    """Lines of text, `indent` columns from the left; one that goes on in the next line does so `hang` further in."""

    lines: Sequence[Cell]
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True, slots=True)
class Fields(Block):
    """Names and values, aligned. A name without a value is left out, unless `shows_empty`."""

    values: Mapping[str, Cell]
    shows_empty: bool = False

    @property
    def rows(self) -> list[tuple[str, Cell]]:
        """What is shown of them."""
        return [(name, value) for name, value in self.values.items() if self.shows_empty or spans(value)]


@dataclass(frozen=True, slots=True)
class Table(Block):
    """Rows under headings, or what `empty` says if there are none.

    On a narrow terminal the `stretch` column, which is the last one unless it says otherwise, goes on in further lines
    under itself, and so do long names. Nothing is cut. The columns in `under`
    go to a line of their own under each row then, and so do their headings.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    stretch: int = -1
    empty: str = ""
    under: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Tree(Block):
    """A line and the lines under it."""

    label: Cell
    children: Sequence[Tree] = ()


def line(*parts: str | Span) -> Line:
    """A line from texts and texts with a style."""
    return [(part, "") if isinstance(part, str) else part for part in parts]


def text(content: str, style: str = "", indent: int = 0) -> Paragraph:
    """Text as it is, line by line."""
    return Paragraph([(row, style) for row in content.split("\n")], indent)


def short(commit: str | None) -> Span:
    """A commit as people name it."""
    return (commit or "")[:SHORT], "id"


def named(id: str | None) -> Span:
    """An id as people see it."""
    return handle(id or ""), "id"


def moment(at: str | None) -> str:
    """A recorded time as people see it: relative while it is recent, else in their time zone."""
    return when(at, now(), time_zone()) if at else ""


def clock(at: str) -> str:
    """A recorded time of a line of a log, in the time zone of the reader."""
    return time_of_day(at, now(), time_zone())


def some(paths: Sequence[str], most: int) -> str:
    """The first of some paths, and how many there are besides."""
    rest = len(paths) - most
    return ", ".join(one_line(path) for path in paths[:most]) + (f" and {rest} more" if rest > 0 else "")


def next_page(items: Sequence[Any]) -> list[Block]:
    """How to see what comes after a page; nothing after the last one."""
    cursor = getattr(items, "next", None)
    return [text(f"{len(items)} shown; go on with --cursor {handle(cursor)}", "dim")] if items and cursor else []


def spans(cell: Cell) -> list[tuple[str, str]]:
    """The texts of a cell and their styles, with control characters made visible; empty ones are left out."""
    if not isinstance(cell, list):
        cell = [cell if isinstance(cell, tuple) else ("" if cell is None else str(cell), "")]
    return [(visible(content).replace("\n", "\\n"), style) for content, style in cell if content]


def unstyled(cell: Cell) -> str:
    """The text of a cell alone."""
    return "".join(content for content, _style in spans(cell))
