"""How the project's environment looks."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Table, line, text
from rookery.environment.ops import ProjectEnvironment, Refreshed, Variable

_NAME, _VALUE = 30, 36
_LINE = 78
_STYLES = {"same": "dim", "changed": "busy", "missing": "bad", "added": "note", "removed": "bad"}


def show(found: ProjectEnvironment, _values: dict[str, Any]) -> list[Block]:
    """What is recorded, what differs from the shell first."""
    blocks: list[Block] = []
    if found.problem:
        blocks += [*_wrapped(f"Not in use: {found.problem}.", "bad"), *_wrapped(f"{found.hint}.", "dim")]
    else:
        blocks.append(Fields((("since", line(found.at or "")), ("by", line(f"{found.by}, with `rook {found.how}`")))))
    blocks += [text("plain values in", "dim"), text(found.path, indent=2)]
    if found.credentials_path:
        blocks += [text("credentials in", "dim"), text(found.credentials_path, indent=2)]
    ordered = sorted(found.variables, key=lambda each: (each.shell == "same", each.name))
    if ordered:
        blocks.append(Table(("variable", "value", "shell"), tuple(_row(each) for each in ordered)))
    return blocks


def _row(each: Variable) -> tuple[Line, ...]:
    if each.length is not None:
        value = line((f"set, {each.length} characters", "note"))
    elif each.value is None:
        value = line(("not recorded", "dim"))
    else:
        value = line(one_line(each.value, _VALUE) or "(empty)")
    return line((one_line(each.name, _NAME), "bold")), value, line((each.shell, _STYLES[each.shell]))


def refreshed(found: Refreshed, _values: dict[str, Any]) -> list[Block]:
    """What changed, without values of credentials."""
    blocks: list[Block] = []
    if found.problem:
        blocks += _wrapped(f"The earlier record could not be used: {found.problem}.", "bad")
    if not found.changes:
        return [*blocks, text("Nothing has changed.", "dim")]
    rows = tuple(
        (
            line((each.what, _STYLES[each.what])),
            line((one_line(each.name, _NAME), "bold")),
            line(("credential" if each.kind == "credential" else "", "note")),
        )
        for each in found.changes
    )
    blocks.append(Table(("", "variable", "kind"), rows))
    said = "Nothing was written: this is what would change." if found.dry_run else "Turns and gates get it from now on."
    return [*blocks, text(said, "dim")]


def _wrapped(content: str, style: str) -> list[Block]:
    return [Paragraph(tuple(line((each, style)) for each in wrap(content, _LINE)))]
