"""The tier as a whole: what holds for every conflict, and what is declined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.merge.resolve import files, loss
from rookery.merge.resolve.conflict import RuleAnswer
from rookery.merge.resolve.files import resolve
from rookery.merge.resolve.markers import has_markers
from rookery.merge.resolve.model import Declined, Resolved, Sides
from rookery.merge.resolve.rules import RULES

from .conflicts import declined, resolved, sides

PATHS = st.sampled_from(
    ["a.py", "a.ts", "a.go", "a.rs", "a.json", "a.toml", "a.yaml", "README.md", "a.txt", "Makefile"]
)
LINE = st.sampled_from(
    [
        *("import a", "import b", "from c import d", "from c import d, e", "def f():", "    return 1", "class G:"),
        *("    x = 2", "", "  ", "* point", "# Title", "version = 1.2.0", "version = 1.3.0", '"key": 1,', "}", "a  "),
    ]
)
TEXT = st.lists(LINE, max_size=12).map(lambda lines: "".join(f"{line}\n" for line in lines).encode())
HISTORY = st.lists(TEXT, max_size=3).map(tuple)


@given(PATHS, TEXT, TEXT)
def test_merging_with_the_base_gives_the_other_side(path: str, base: bytes, side: bytes) -> None:
    for given_sides in (Sides(path, base, base, side), Sides(path, base, side, base), Sides(path, base, side, side)):
        got = resolve(given_sides)
        if isinstance(got, Resolved):
            assert got.content == side
            assert not got.hunks
        else:
            assert has_markers(side)


@given(PATHS, st.one_of(st.none(), TEXT), TEXT, TEXT, HISTORY, HISTORY)
def test_a_result_never_fails_the_loss_check(
    path: str, base: bytes | None, ours: bytes, theirs: bytes, left: tuple[bytes, ...], right: tuple[bytes, ...]
) -> None:
    given_sides = Sides(path, base, ours, theirs, ours_history=left, theirs_history=right)
    got = resolve(given_sides)

    if isinstance(got, Resolved):
        assert loss.check(given_sides, got.content, got.covers) == []
        assert not has_markers(got.content)
        lines = got.content.decode().splitlines()
        for hunk in got.hunks:
            assert "\n".join(lines[hunk.start - 1 : hunk.end - 1]) == hunk.result


@given(PATHS, TEXT, TEXT, TEXT, HISTORY, HISTORY)
def test_both_ways_round_the_same_lines_come_out(
    path: str, base: bytes, ours: bytes, theirs: bytes, left: tuple[bytes, ...], right: tuple[bytes, ...]
) -> None:
    one = resolve(Sides(path, base, ours, theirs, ours_history=left, theirs_history=right))
    other = resolve(Sides(path, base, theirs, ours, ours_history=right, theirs_history=left))

    assert isinstance(one, Resolved) == isinstance(other, Resolved)
    if isinstance(one, Resolved) and isinstance(other, Resolved):
        assert _lines(one) == _lines(other)


@given(st.lists(st.sampled_from("abcdef"), min_size=5, max_size=30), st.data())
def test_edits_that_are_apart_always_merge(letters: list[str], data: st.DataObject) -> None:
    base = [f"line {number} {letter}" for number, letter in enumerate(letters)]
    first = data.draw(st.integers(0, len(base) - 3))
    second = data.draw(st.integers(first + 2, len(base) - 1))
    ours, theirs = list(base), list(base)
    ours[first], theirs[second] = "ours", "theirs"
    both = list(ours)
    both[second] = "theirs"

    before, left, right = ("\n".join(lines).encode() for lines in (base, ours, theirs))
    got = resolve(Sides("a.txt", before, left, right))

    assert isinstance(got, Resolved)
    assert got.content == "\n".join(both).encode()


@given(PATHS, *[st.one_of(st.none(), st.binary(max_size=60))] * 3, st.lists(st.binary(max_size=20), max_size=2))
def test_garbage_never_raises(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None, history: list[bytes]
) -> None:
    got = resolve(Sides(path, base, ours, theirs, ours_history=tuple(history), theirs_history=tuple(history)))

    assert isinstance(got, Resolved | Declined)


@pytest.mark.parametrize(
    ("given_sides", "kind"),
    [
        (Sides("a", b"x\n", None, b"y\n"), "modify/delete"),
        (Sides("a", b"x\n", b"y\n", None), "modify/delete"),
        (Sides("a", None, b"x\n", b"y\n"), "add/add"),
        (Sides("a", b"x\n", b"y\n", b"z\n"), "content"),
        (Sides("a", b"x\n", b"y\0\n", b"z\n"), "binary"),
        (Sides("a", b"x\n", b"y\xff\n", b"z\n"), "encoding"),
        (Sides("yarn.lock", b"x\n", b"y\n", b"y\nz\n"), "lockfile"),
        (Sides("a", b"x", b"y", b"z", "120000", "120000", "120000"), "symlink"),
        (Sides("a", b"x", b"y", b"z", "160000", "160000", "160000"), "submodule"),
        (Sides("a", b"x\n", b"x\n", b"x\n", "100644", "100755", "100600"), "mode"),
        (Sides("a", b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", b"x\n", b"y\n"), "criss_cross"),
    ],
)
def test_what_is_declined_says_what_kind_of_conflict_it_is(given_sides: Sides, kind: str) -> None:
    assert declined(given_sides).kind == kind


def test_a_lock_file_comes_with_the_command_that_makes_it_again() -> None:
    assert "cargo update --workspace" in declined(Sides("Cargo.lock", b"a\n", b"b\n", b"c\n")).reason


def test_bounds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given_sides = sides("a.txt", "one\ntwo\nthree\n", "ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n")

    resolved(given_sides)
    monkeypatch.setattr(files, "_MOST_LINES", 2)
    assert "2 lines" in declined(given_sides).reason
    monkeypatch.setattr(files, "_MOST_BYTES", 5)
    assert "5 bytes" in declined(given_sides).reason


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "mode"),
    [("100644", "100755", "100644", "100755"), ("100644", "100644", "100755", "100755"), (None, None, None, None)],
)
def test_the_mode_that_one_side_changed_is_kept(
    base: str | None, ours: str | None, theirs: str | None, mode: str | None
) -> None:
    got = resolve(Sides("a", b"x\n", b"x\n", b"y\n", base, ours, theirs))

    assert isinstance(got, Resolved)
    assert got.mode == mode


def test_a_side_that_changed_the_line_ends_keeps_them() -> None:
    base, tidied, changed = b"one\ntwo\nthree\n", b"one\r\ntwo\r\nthree\r\n", b"one\ntwo\nTHREE\n"
    for got in (resolve(Sides("a", base, tidied, changed)), resolve(Sides("a", base, changed, tidied))):
        assert isinstance(got, Resolved)
        assert got.content == b"one\r\ntwo\r\nTHREE\r\n"


def test_byte_order_mark_and_last_newline_are_merged_apart_from_the_lines() -> None:
    got = resolve(Sides("a", b"one\ntwo\nthree", b"\xef\xbb\xbfone\ntwo\nthree", b"one\ntwo\nthree\n"))

    assert isinstance(got, Resolved)
    assert got.content == b"\xef\xbb\xbfone\ntwo\nthree\n"


def test_a_result_that_would_not_parse_is_declined() -> None:
    # Each side parses and nothing is in conflict: the one made a string of everything, the other put one within.
    base = "a = 1\nb = 2\nc = 3\n"
    ours = f's = """\n{base}"""\n'
    theirs = 'a = 1\nb = 2\nd = """x"""\nc = 3\n'

    assert "parse" in declined(sides("a.py", base, ours, theirs)).reason
    resolved(sides("a.txt", base, ours, theirs))


def test_a_rule_that_loses_a_line_and_does_not_say_so_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    conflict = sides("a.txt", "a\nb\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n")
    answer = RuleAnswer("version", ("ours",), "so it is", replaces=True)
    monkeypatch.setitem(RULES, "version", lambda _region, _case: answer)

    assert "lost: 'theirs'" in declined(conflict).reason


def test_a_rule_that_may_replace_nothing_has_to_keep_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    conflict = sides("a.txt", "a\nb\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n")
    answer = RuleAnswer("version", ("ours",), "so it is", drops=True)
    monkeypatch.setitem(RULES, "version", lambda _region, _case: answer)

    assert "no rule settles" in declined(conflict).reason


def test_hunks_tell_what_was_done() -> None:
    given_sides = sides("a.txt", "a\nz\n", "a\none\nz\n", "a\none\ntwo\nz\n")
    (hunk,) = resolved(given_sides, "contained").hunks

    assert (hunk.start, hunk.end) == (2, 4)
    assert (hunk.ours, hunk.base, hunk.theirs, hunk.result) == ("one", "", "one\ntwo", "one\ntwo")
    assert "theirs" in hunk.why
    assert hunk.covers == ()


def test_what_hunks_tell_is_bounded() -> None:
    long = "".join(f"a line that is not short, number {number}\n" for number in range(1000))
    (hunk,) = resolved(sides("a.txt", "a\nz\n", "a\none\nz\n", f"a\none\n{long}z\n"), "contained").hunks

    assert len(hunk.result) <= 4000


def _lines(got: Resolved) -> list[str]:
    return sorted(line.rstrip() for line in got.content.decode().splitlines() if line.strip())
