"""Puts views on the screen: by rich on a terminal, as plain text in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from rookery.base.call import stderr, stdout
from rookery.base.ids import with_handles
from rookery.base.record import words_of
from rookery.base.text import columns_of, visible
from rookery.cli.document import Block, Fields, Paragraph, Table, Tree, text, unstyled
from rookery.config.environ import asked_width


def print_view(view: str, data: Any, values: dict[str, Any], *, no_color: bool) -> None:
    """Show a result to a person."""
    show(_draw(view, data, values), no_color=no_color)


def redraw_views(view: str, results: Iterable[Any], values: dict[str, Any], *, no_color: bool) -> None:
    """Show results on a terminal, each in the place of the one before."""
    from rookery.cli.rich_output import LiveScreen  # rich takes 25 ms to import

    with LiveScreen(no_color=no_color) as screen:
        for data in results:
            screen.draw(map(_or_note, _draw(view, data, values)))


def _draw(view: str, data: Any, values: dict[str, Any]) -> Iterable[Block]:
    module, _, function = view.partition(".")
    blocks: Iterable[Block] = getattr(import_module(f"rookery.cli.views.{module}"), function)(data, values)
    return blocks


def print_ids(data: Any) -> None:
    """Print what the next command accepts of a result, a word a line; nothing of one that is a text by itself."""
    for word in () if isinstance(data, str) else words_of(data):
        print(word, file=stdout())


def print_error(message: str, hint: str, *, no_color: bool) -> None:
    """Say on standard error what is wrong and what to do."""
    fancy = stderr().isatty() and not no_color
    red, dim, end = ("\033[31m", "\033[2m", "\033[0m") if fancy else ("", "", "")
    reason, advice = visible(with_handles(message)), visible(with_handles(hint))
    lines = f"{red}error:{end} {reason}\n" + (f"{dim}hint:{end} {advice}\n" if hint else "")
    stderr().buffer.write(lines.encode(errors="backslashreplace"))
    stderr().flush()


def show(blocks: Iterable[Block], *, no_color: bool = False) -> None:
    """Print blocks to standard output."""
    out, blocks = stdout(), shown(blocks)
    if out.isatty() or asked_width():
        from rookery.cli.rich_output import draw  # rich takes 25 ms to import

        draw(blocks, no_color=no_color)
    else:
        for row in (row for block in blocks for row in plain(block)):
            out.buffer.write(row.rstrip().encode(errors="backslashreplace") + b"\n")
    out.flush()


def shown(blocks: Iterable[Block]) -> list[Block]:
    """What is printed of blocks: a table without rows says so instead."""
    return [_or_note(block) for block in blocks]


def _or_note(block: Block) -> Block:
    """The block; for a table without rows, what it says then."""
    if isinstance(block, Table) and not block.rows and block.empty:
        return text(block.empty, "dim")
    return block


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
            widths = [max(columns_of(row[column]) for row in cells) for column in range(len(headings))]
            for row in cells:
                yield "  ".join(
                    cell + " " * (width - columns_of(cell)) for cell, width in zip(row, widths, strict=True)
                )
        case Tree(label=label, children=children):
            yield unstyled(label)
            for number, child in enumerate(children, 1):
                last = number == len(children)
                first, *rest = plain(child)
                yield ("└─ " if last else "├─ ") + first
                yield from (("   " if last else "│  ") + line for line in rest)
