"""How settings look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Fields, Table, line, text
from rookery.config.sources import Origin
from rookery.ops.config import Explained, Setting


def show(settings: list[Setting], _values: dict[str, Any]) -> list[Block]:
    """Every setting."""
    rows = tuple(
        (line((each.key, "bold")), line(each.shown or "(empty)"), line((_place(each.origin), "dim")))
        for each in settings
    )
    return [Table(("key", "value", "from"), rows)]


def explain(found: Explained, _values: dict[str, Any]) -> list[Block]:
    """One setting at length."""
    rows = [
        ("value", line((found.shown or "(empty)", "bold"))),
        ("from", line(_place(found.origin))),
        ("default", line(found.default_shown or "(empty)")),
        ("accepts", line(found.accepts)),
        ("variable", line(found.variable)),
    ]
    layers = tuple(
        (line(each.layer), line(each.shown or "(empty)"), line((_place(each.origin), "dim"))) for each in found.layers
    )
    return [
        text(found.key, "title"),
        text(found.documentation, indent=2),
        Fields(tuple(rows)),
        Table(("layer", "says", "where"), layers),
    ]


def _place(origin: Origin) -> str:
    return str(origin)
