"""How settings look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Fields, Table, line, text
from rookery.ops.config import Explained, Setting


def show(settings: list[Setting], _values: dict[str, Any]) -> list[Block]:
    """Every setting."""
    rows = tuple(
        (line((setting.key, "bold")), line(setting.shown or "(empty)"), line((str(setting.origin), "dim")))
        for setting in settings
    )
    return [Table(("key", "value", "from"), rows)]


def explain(setting: Explained, _values: dict[str, Any]) -> list[Block]:
    """One setting at length."""
    rows = [
        ("value", line((setting.shown or "(empty)", "bold"))),
        ("from", line(str(setting.origin))),
        ("default", line(setting.default_shown or "(empty)")),
        ("accepts", line(setting.accepts)),
        ("variable", line(setting.variable)),
    ]
    layers = tuple(
        (line(layer.layer), line(layer.shown or "(empty)"), line((str(layer.origin), "dim")))
        for layer in setting.layers
    )
    return [
        text(setting.key, "title"),
        text(setting.documentation, indent=2),
        Fields(tuple(rows)),
        Table(("layer", "says", "where"), layers),
    ]
