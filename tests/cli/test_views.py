"""Every view of every operation, drawn at 80 columns with long texts: nothing is missing, and people can read it.

The views are those that operations name, so a new one is tried by itself; what it is shown comes from `samples.py`.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from rich.cells import cell_len

from cli.samples import samples
from rookery.base.call import Call, serving
from rookery.cli.document import Block, Table, unstyled
from rookery.cli.render import plain, shown
from rookery.cli.rich_output import draw
from rookery.ops import index

_WIDTH = 80
_AS_IT_IS = {"plain.lines", "plain.schema", "plain.candidates", "agents.attach", "runs.spec", "hooks.installed"}
"""What is no prose: scripts, schemas, texts of others."""
_NEVER_FOLDED = 14
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")
_WHOLE_ID = re.compile(r"(?<![/\w])(task|lrn|msg|run|mrg)_[0-9A-Z]{26}")
_WRONG_PLURAL = re.compile(
    r"\b1 (?!(?:is|was|has|this|its|passes)\b)(?:(?:more|new|other|failed|ignored) )?[a-z]+[^s\W]s\b"
)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(blocks: list[Block], width: int) -> list[str]:
    """The lines that rich prints, without colours."""
    out = _Terminal()
    environ = {"TERM": "xterm", "TZ": "Europe/Berlin"}
    with serving(Call(environ=environ, cwd="/", umask=0, pid=1, streams=(out, out, out), size=lambda: (width, 24))):
        draw(blocks, no_color=True)
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()]


def _pairs() -> Iterator[tuple[str, Any]]:
    for operation in index.load_all():
        if operation.view:
            yield operation.view, operation.result


PAIRS = sorted({(view, str(result)): (view, result) for view, result in _pairs()}.items())
CASES = [pytest.param(*pair, id=f"{pair[0]}-{number}") for number, (_, pair) in enumerate(PAIRS)]


def _drawn(view: str, result: Any) -> list[list[Block]]:
    module, _, function = view.partition(".")
    draw_view = getattr(import_module(f"rookery.cli.views.{module}"), function)
    return [
        shown(draw_view(value, values))
        for value in samples(result)
        for values in ({"name": "bee"}, {"name": "bee", "dry_run": True})
    ]


@pytest.mark.parametrize(("view", "result"), CASES)
def test_a_view_fits_80_columns_and_leaves_nothing_out(view: str, result: Any) -> None:
    for blocks in _drawn(view, result):
        lines = on_terminal(blocks, _WIDTH)
        assert max(map(cell_len, lines), default=0) <= _WIDTH
        for table in (block for block in blocks if isinstance(block, Table)):
            _check_whole(table)


def _check_whole(table: Table) -> None:
    cells = [*table.headings, *(unstyled(cell) for row in table.rows for cell in row)]
    lines = on_terminal([table], _WIDTH)
    letters = Counter("".join(lines)) - Counter({" ": 1_000_000})
    assert letters == Counter("".join(cells)) - Counter({" ": 1_000_000})
    for cell in cells:
        if len(cell) <= _NEVER_FOLDED:
            assert any(cell.rstrip() in line for line in lines), cell
    piped = list(plain(table))
    assert len(piped) == len(table.rows) + 1
    for row, line in zip(table.rows, piped[1:], strict=True):
        assert all(unstyled(cell) in line for cell in row)


@pytest.mark.parametrize(("view", "result"), [case for case in CASES if case.values[0] not in _AS_IT_IS])
def test_people_see_handles_their_own_time_and_correct_plurals(view: str, result: Any) -> None:
    for blocks in _drawn(view, result):
        content = "\n".join(line for block in blocks for line in plain(block))
        for wrong in (_STAMP, _WHOLE_ID, _WRONG_PLURAL):
            assert not wrong.findall(content), content
