"""A file as lines, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.merge.resolve import text


@given(st.text(alphabet="ab\r\n\ufeff\u2028\x0b é").map(str.encode))
def test_every_text_comes_back_byte_by_byte(content: bytes) -> None:
    parsed = text.read(content)

    assert parsed is not None
    assert parsed.encode() == content


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"\xc3("])
def test_what_is_not_utf_8_is_no_text(content: bytes) -> None:
    assert text.read(content) is None


def test_only_newlines_end_lines() -> None:
    parsed = text.read("a\u2028b\x0bc\n".encode())

    assert parsed is not None
    assert parsed.lines == ("a\u2028b\x0bc",)


def test_mixed_line_ends_stay_in_the_lines() -> None:
    parsed = text.read(b"a\r\nb\n")

    assert parsed is not None
    assert parsed.lines == ("a\r", "b")
