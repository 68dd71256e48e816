"""Where things stand on a terminal that is too narrow for them, and in a pipe."""

from __future__ import annotations

from cli.test_views import on_terminal
from rookery.cli.document import Paragraph, Table
from rookery.cli.render import plain

LONG = "abcdefghijklmnopqrstuvwxyz-0123456789-abcdefghij"


def test_one_long_name_moves_no_other_row() -> None:
    rows = [("bee", "builder", "waiting 7s", "Write the parser"), (LONG, "builder", "working 12m", "Test the parser")]
    table = Table(("agent", "role", "state", "task"), [*rows, ("wasp", "lead", "working 1s", "")], under=(3,))
    assert on_terminal([table], 60) == [
        "agent  role     state",
        "    task",
        "bee    builder  waiting 7s",
        "    Write the parser",
        f"{LONG}  builder",
        "    working 12m",
        "    Test the parser",
        "wasp   lead     working 1s",
    ]


def test_a_table_in_which_only_one_row_is_too_wide_stays_aligned() -> None:
    headings = ("agent", "session", "changed", "untracked", "unmerged", "ignored")
    table = Table(headings, [(LONG, "waiting", "0", "1", "0", "0"), ("bee", "waiting", "0", "1", "0", "0")])
    lines = on_terminal([table], 60)
    assert lines[0].index("untracked") == lines[-1].index("1")


def test_a_line_that_goes_on_is_indented() -> None:
    lines = on_terminal([Paragraph(["12:00  bee  some words that do not fit on one line"], indent=2, hang=4)], 30)
    assert lines == ["  12:00  bee  some words that", "      do not fit on one line"]
    assert on_terminal([Paragraph(["x" * 50], hang=4)], 30) == ["x" * 30, "    " + "x" * 20]


def test_wide_characters_keep_the_columns_of_a_pipe() -> None:
    table = Table(("title", "state"), [("漢字", "one"), ("🚀 e\u0301", "two"), ("abcd", "three")])
    assert list(plain(table)) == ["title  state", "漢字   one  ", "🚀 e\u0301   two  ", "abcd   three"]
