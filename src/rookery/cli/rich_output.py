"""What rich draws on a terminal: blocks, and a bar for long work. It takes nothing of a user's text as markup.

Loaded only for a terminal: rich takes 25 ms to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Self, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text
from rich.tree import Tree as RichTree

from rookery.base.call import current, stderr, stdout
from rookery.cli.document import STYLES, Block, Cell, Fields, Paragraph, Table, Tree, spans, unstyled
from rookery.config.environ import asked_width

_GAP = 2
_LEAST_TEXT = 24
_LEAST_WIDTH = 14
"""Narrower than the longest state no column gets, so that only names, branches and the like are folded."""
_INDENT = " " * 4


def draw(blocks: Iterable[Block], *, no_color: bool) -> None:
    """Print blocks to the terminal."""
    _draw(open_console(stdout(), no_color=no_color), blocks)


def _draw(console: Console, blocks: Iterable[Block]) -> None:
    for block in blocks:
        match block:
            case Paragraph(lines=lines, indent=indent, hang=hang):
                for line in lines:
                    for row in _hung(_text(line), console, console.width - indent, hang):
                        console.print(Padding(row, (0, 0, 0, indent)))
            case Fields(rows=rows):
                grid = RichTable.grid(padding=(0, 2, 0, 0))
                grid.add_column(style="bright_black", no_wrap=True)
                grid.add_column(overflow="fold")
                for name, value in rows:
                    grid.add_row(name, _text(value))
                console.print(grid)
            case Table(under=under) if under and _natural_width(block) > console.width:
                for renderable in _two_lines(block, console.width):
                    console.print(renderable)
            case Table():
                _draw_table(console, block)
            case Tree():
                console.print(_tree(block))


def _hung(content: Text, console: Console, width: int, hang: int) -> Iterator[Text]:
    """The text; what does not fit on its first line is indented by `hang`."""
    first = content.wrap(console, width)[0] if hang and content.cell_len > width > 2 * hang else content
    yield first
    start = len(first.plain)
    start += len(content.plain[start:]) - len(content.plain[start:].lstrip())
    if start < len(content.plain):
        for row in content[start:].wrap(console, width - hang):
            row.pad_left(hang)
            yield row


class LiveScreen(AbstractContextManager["LiveScreen"]):
    """The terminal's other screen, on which each view takes the place of the one before; then the first one is back."""

    def __init__(self, *, no_color: bool) -> None:
        self._no_color = no_color

    def __enter__(self) -> Self:
        self._write("\033[?1049h\033[?25l")
        return self

    def draw(self, blocks: Iterable[Block]) -> None:
        """Show the blocks, as many lines as the terminal has."""
        console = open_console(stdout(), no_color=self._no_color)
        with console.capture() as captured:
            _draw(console, blocks)
        lines, room = captured.get().rstrip("\n").split("\n"), max(2, console.height)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines: make the window higher"]
        self._write("\033[H" + "\r\n".join(f"{line}\033[K" for line in lines) + "\033[J")

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):  # the terminal is gone
            self._write("\033[?25h\033[?1049l")

    def _write(self, text: str) -> None:
        out = stdout()
        out.buffer.write(text.encode(errors="backslashreplace"))
        out.flush()


def open_console(file: TextIO, **more: Any) -> Console:
    """The caller's terminal, as wide as it is and with the colours that it can show."""
    call = current()
    if call is not None:
        columns, lines = call.size()
        more |= {"width": columns, "height": lines, "_environ": call.environ}
        if "COLUMNS" in call.environ:
            del more["width"]
    if asked_width():
        more |= {"width": asked_width(), "force_terminal": file.isatty()}  # no colours in a pipe
    return Console(file=file, highlight=False, soft_wrap=False, **more)


def _draw_table(console: Console, block: Table) -> None:
    """A table that keeps all of its columns: the long ones go on in the next line, under themselves."""
    widths = _fit(block, console.width)
    if widths is None:
        for renderable in _two_lines(block, console.width):
            console.print(renderable)
        return
    table = RichTable(box=None, header_style="bright_black", padding=(0, _GAP, 0, 0), pad_edge=False)
    for heading, width in zip(block.headings, widths, strict=True):
        table.add_column(heading, width=width, overflow="fold")
    for row in block.rows:
        table.add_row(*(_text(cell) for cell in row))
    console.print(table)


def _natural_width(block: Table) -> int:
    """How wide a table is if nothing is folded."""
    return sum(_widths(block)) + _GAP * (len(block.headings) - 1)


def _widths(block: Table) -> list[int]:
    columns = zip(block.headings, *([unstyled(cell) for cell in row] for row in block.rows), strict=True)
    return [max(map(cell_len, column)) for column in columns]


def _fit(block: Table, room: int) -> list[int] | None:
    """How wide each column is, so that all fit; None if they cannot.

    First the text gives way, down to a width at which it can still be read, then the widest of the others.
    """
    widths = _widths(block)
    text = block.stretch if block.stretch >= 0 else len(widths) - 1
    missing = sum(widths) + _GAP * (len(widths) - 1) - room
    if missing > 0:
        taken = max(0, min(missing, widths[text] - _LEAST_TEXT))
        widths[text] -= taken
        missing -= taken
    for _ in range(missing):
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _LEAST_WIDTH:
            return None
        widths[widest] -= 1
    return widths


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


def _two_lines(block: Table, width: int) -> Iterator[Text | Padding]:
    """A table that is too wide: aligned columns, and under each row those that go there."""
    upper = [column for column in range(len(block.headings)) if column not in block.under]
    rows = (block.headings, *block.rows)
    widths = _aligned_widths([[_text(row[column]) for column in upper] for row in rows], width)
    for number, row in enumerate(rows):
        cells = [_text(row[column]) for column in upper]
        for cell, least in zip(cells[:-1], widths, strict=False):
            cell.pad_right(least - cell.cell_len)
        line = Text(" " * _GAP).join(cells)
        line.rstrip()
        line.stylize("bright_black" if number == 0 else "")
        if line.cell_len > width:  # not even these fit beside each other
            line = _wrapped([row[column] for column in upper], width, "" if number else "bright_black")
        yield line
        under = Text(" " * _GAP).join(cell for column in block.under if (cell := _text(row[column])))
        under.stylize("bright_black" if number == 0 else "")
        if under:
            yield Padding(under, (0, 0, 0, len(_INDENT)))


def _aligned_widths(rows: Sequence[Sequence[Text]], width: int) -> list[int]:
    """How wide each column is for as many rows as fit, the headings first; a single long name moves no other row."""
    heading, *others = ([cell.cell_len for cell in row] for row in rows)
    widths = heading
    for cells in sorted(others, key=sum):
        wider = list(map(max, widths, cells))
        if sum(wider) + _GAP * (len(wider) - 1) > width:
            break
        widths = wider
    return widths


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
