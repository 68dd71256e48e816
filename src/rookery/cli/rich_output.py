"""What rich draws on a terminal: blocks, and a bar for long work. It takes nothing of a user's text as markup.

Loaded only for a terminal: rich takes 25 ms to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text
from rich.tree import Tree as RichTree

from rookery.base.call import current, stderr, stdout
from rookery.cli.document import STYLES, Block, Cell, Fields, Paragraph, Table, Tree, spans, unstyled

_LEAST_WIDTH = 12
_INDENT = " " * 4


def draw(blocks: Iterable[Block], *, no_color: bool) -> None:
    """Print blocks to the terminal."""
    console = open_console(stdout(), no_color=no_color)
    for block in blocks:
        match block:
            case Paragraph(lines=lines, indent=indent):
                for line in lines:
                    console.print(Padding(_text(line), (0, 0, 0, indent)))
            case Fields(rows=rows):
                grid = RichTable.grid(padding=(0, 2, 0, 0))
                grid.add_column(style="bright_black", no_wrap=True)
                grid.add_column(overflow="fold")
                for name, value in rows:
                    grid.add_row(name, _text(value))
                console.print(grid)
            case Table() if _least_width(block) > console.width:
                for row in (block.headings, *block.rows):
                    console.print(_wrapped(row, console.width, "bright_black" if row is block.headings else ""))
            case Table():
                console.print(_table(block))
            case Tree():
                console.print(_tree(block))


def open_console(file: TextIO, **more: Any) -> Console:
    """The caller's terminal, as wide as it is and with the colours that it can show."""
    call = current()
    if call is not None:
        columns, lines = call.size()
        more |= {"width": columns, "height": lines, "_environ": call.environ}
        if "COLUMNS" in call.environ:
            del more["width"]
    return Console(file=file, highlight=False, soft_wrap=False, **more)


def _table(block: Table) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, header_style="bright_black", pad_edge=False, expand=False)
    yielding, widths = _widths(block)
    for number, heading in enumerate(block.headings):
        if number == yielding:
            table.add_column(heading, no_wrap=True, overflow="ellipsis", min_width=min(widths[number], _LEAST_WIDTH))
        else:
            table.add_column(heading, no_wrap=True, overflow="fold", min_width=widths[number])
    for row in block.rows:
        table.add_row(*(_text(cell) for cell in row))
    return table


def _least_width(block: Table) -> int:
    """How many columns a table takes at least, with a space at both ends and three between two columns."""
    yielding, widths = _widths(block)
    return sum(widths) - max(0, widths[yielding] - _LEAST_WIDTH) + 3 * len(widths) - 1


def _widths(block: Table) -> tuple[int, list[int]]:
    """The column that gives way on a narrow terminal, and how wide each would be; rich would cut a little of each."""
    cells = zip(block.headings, *([unstyled(cell) for cell in row] for row in block.rows), strict=True)
    widths = [max(map(cell_len, column)) for column in cells]
    return block.stretch if block.stretch >= 0 else widths.index(max(widths)), widths


def _wrapped(row: Sequence[Cell], width: int, style: str) -> Text:
    """A row of a table that is too wide, in as many lines as it takes."""
    lines = [Text(style=style)]
    for cell in (_text(cell) or Text("-") for cell in row):
        if lines[-1] and lines[-1].cell_len + 2 + cell.cell_len > width:
            lines.append(Text(_INDENT, style=style))
        elif lines[-1]:
            lines[-1].append("  ")
        lines[-1].append_text(cell)
    return Text("\n").join(lines)


def _tree(block: Tree) -> RichTree:
    tree = RichTree(_text(block.label), guide_style="bright_black")
    for child in block.children:
        tree.children.append(_tree(child))
    return tree


def _text(cell: Cell) -> Text:
    return Text.assemble(*((content, STYLES[style]) for content, style in spans(cell)))


def show_progress(label: str, total: int) -> Callable[[int], None]:
    """Start a bar on standard error; the function that is returned moves it, and ends it at `total`."""
    if total == 0:  # nothing would ever end the bar
        return lambda _done: None
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=open_console(stderr()),
        transient=True,
    )
    task = bar.add_task(label, total=total)
    bar.start()

    def move(done: int) -> None:
        bar.update(task, completed=done)
        if done >= total:
            bar.stop()

    return move
