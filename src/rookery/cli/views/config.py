"""How settings look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Cell, Fields, Table, text
from rookery.ops.config import Explained, Setting


def show(settings: list[Setting], _values: dict[str, Any]) -> list[Block]:
    """Every setting."""
    rows = [((setting.key, "bold"), setting.shown or "(empty)", (str(setting.origin), "dim")) for setting in settings]
    return [Table(("key", "value", "from"), rows)]


def explain(setting: Explained, _values: dict[str, Any]) -> list[Block]:
    """One setting at length."""
    fields: dict[str, Cell] = {
        "value": (setting.shown or "(empty)", "bold"),
        "from": str(setting.origin),
        "default": setting.default_shown or "(empty)",
        "accepts": setting.accepts,
        "variable": setting.variable,
    }
    layers = [(layer.layer, layer.shown or "(empty)", (str(layer.origin), "dim")) for layer in setting.layers]
    return [
        text(setting.key, "title"),
        text(setting.documentation, indent=2),
        Fields(fields),
        Table(("layer", "value", "where"), layers),
    ]
