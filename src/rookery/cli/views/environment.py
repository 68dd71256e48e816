"""How the project's environment and its settings look."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Cell, Fields, Paragraph, Table, moment, text
from rookery.environment.ops import ProjectEnvironment, Variable
from rookery.environment.service import Refreshed
from rookery.ops.config import Explained, Setting

_LINE = 78
_VALUE = 30
_STYLES = {"same": "dim", "changed": "busy", "missing": "bad", "added": "note", "removed": "bad"}


def show(environment: ProjectEnvironment, _values: dict[str, Any]) -> Iterator[Block]:
    """What is recorded; what differs from the shell comes first."""
    if environment.problem:
        yield _wrapped(f"Not in use: {environment.problem}.", "bad")
        yield _wrapped(f"{environment.hint}.", "dim")
    else:
        author = f"{environment.by}, with `rook {environment.how}`"
        yield Fields({"recorded": moment(environment.at), "by": author}, shows_empty=True)
    yield text("plain values in", "dim")
    yield text(environment.path, indent=2)
    if environment.credentials_path:
        yield text("credentials in", "dim")
        yield text(environment.credentials_path, indent=2)
    ordered = sorted(environment.variables, key=lambda variable: (variable.shell == "same", variable.name))
    if ordered:
        yield Table(("variable", "value", "shell"), [_row(variable) for variable in ordered])


def _row(variable: Variable) -> tuple[Cell, ...]:
    value: Cell
    if variable.length is not None:
        value = (f"set, {plural(variable.length, 'character')}", "note")
    elif variable.value is None:
        value = ("not recorded", "dim")
    else:
        value = one_line(variable.value, _VALUE) or "(empty)"
    return (one_line(variable.name), "bold"), value, (variable.shell, _STYLES[variable.shell])


def refreshed(result: Refreshed, _values: dict[str, Any]) -> Iterator[Block]:
    """What changed, without values of credentials."""
    if result.problem:
        yield _wrapped(f"The earlier record could not be used: {result.problem}.", "bad")
    rows = [
        (
            (change.what, _STYLES[change.what]),
            (one_line(change.name), "bold"),
            ("credential" if change.kind == "credential" else "", "note"),
        )
        for change in result.changes
    ]
    yield Table(("", "variable", "kind"), rows, empty="Nothing has changed.")
    if rows:
        plan = "Nothing was written: this is what would change."
        yield text(plan if result.dry_run else "Turns and gates get it from now on.", "dim")


def _wrapped(content: str, style: str) -> Block:
    return Paragraph([(part, style) for part in wrap(content, _LINE)])


def settings(shown: list[Setting], _values: dict[str, Any]) -> list[Block]:
    """Every setting."""
    rows = [((setting.key, "bold"), setting.shown or "(empty)", (str(setting.origin), "dim")) for setting in shown]
    return [Table(("key", "value", "from"), rows)]


def setting(explained: Explained, _values: dict[str, Any]) -> list[Block]:
    """One setting at length."""
    fields: dict[str, Cell] = {
        "value": (explained.shown or "(empty)", "bold"),
        "from": str(explained.origin),
        "default": explained.default_shown or "(empty)",
        "accepts": explained.accepts,
        "variable": explained.variable,
    }
    layers = [(layer.layer, layer.shown or "(empty)", (str(layer.origin), "dim")) for layer in explained.layers]
    return [
        text(explained.key, "title"),
        text(explained.documentation, indent=2),
        Fields(fields),
        Table(("layer", "value", "where"), layers),
    ]
