"""Puts views on the screen: by rich on a terminal, as plain text in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from rookery.base.call import stderr, stdout
from rookery.base.text import visible
from rookery.cli.document import Block, Fields, Paragraph, Table, Tree, unstyled


def print_view(view: str, data: Any, values: dict[str, Any], *, quiet: bool, no_color: bool) -> None:
    """Show a result to a person."""
    if quiet:
        for identity in _ids(data):
            print(identity, file=stdout())
        return
    show(_view(view)(data, values), no_color=no_color)


def print_stream(view: str, results: Iterable[Any], *, quiet: bool, no_color: bool) -> None:
    """Show results one by one, as they come."""
    draw = _view(view)
    for result in results:
        if not quiet:
            show(draw(result, {}), no_color=no_color)
            stdout().flush()


def print_error(message: str, hint: str, *, no_color: bool) -> None:
    """Say on standard error what is wrong and what to do."""
    fancy = stderr().isatty() and not no_color
    red, dim, end = ("\033[31m", "\033[2m", "\033[0m") if fancy else ("", "", "")
    shown = "\n".join(map(visible, message.split("\n")))
    text = f"{red}error:{end} {shown}\n" + (f"{dim}hint:{end} {visible(hint)}\n" if hint else "")
    stderr().buffer.write(text.encode(errors="backslashreplace"))
    stderr().flush()


def show(blocks: Iterable[Block], *, no_color: bool = False) -> None:
    """Print blocks to standard output."""
    out = stdout()
    if out.isatty():
        from rookery.cli.rich_output import draw  # rich takes 25 ms to import

        draw(blocks, no_color=no_color)
        return
    for block in blocks:
        for row in plain(block):
            out.buffer.write(row.rstrip().encode(errors="backslashreplace") + b"\n")
    out.buffer.flush()


def plain(block: Block) -> Iterator[str]:
    """A block as lines of plain text, nothing cut."""
    match block:
        case Paragraph(lines=lines, indent=indent):
            for line in lines:
                yield " " * indent + unstyled(line)
        case Fields(rows=rows):
            width = max((len(name) for name, _ in rows), default=0)
            for name, value in rows:
                yield f"{name:<{width}}  {unstyled(value)}"
        case Table(headings=headings, rows=rows):
            cells = [[*headings], *([unstyled(cell) for cell in row] for row in rows)]
            widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
            for row in cells:
                yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        case Tree(label=label, children=children):
            yield unstyled(label)
            for number, child in enumerate(children, 1):
                last = number == len(children)
                first, *rest = plain(child)
                yield ("└─ " if last else "├─ ") + first
                yield from (("   " if last else "│  ") + line for line in rest)


def _view(name: str) -> Callable[[Any, dict[str, Any]], list[Block]]:
    module, _, function = name.partition(".")
    view: Callable[[Any, dict[str, Any]], list[Block]] = getattr(import_module(f"rookery.cli.views.{module}"), function)
    return view


def _ids(data: Any) -> Iterator[str]:
    """The ids of a result, for scripts."""
    data = getattr(data, "messages", data)
    if isinstance(data, list | tuple):
        for item in data:
            yield from _ids(item)
        return
    task = getattr(data, "task", data)
    task = getattr(task, "task", task)
    if isinstance(getattr(task, "id", None), str):
        yield task.id
