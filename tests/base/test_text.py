from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base.errors import InvalidInput
from rookery.base.text import check_name, check_text, check_title, in_words, one_line, plural


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003", "a\0b", "\ud800", "é" * 2001])
def test_a_title_that_cannot_be_kept_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_title(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["x", "a\nb", "👩‍👩‍👧", "שלום", "e\u0301", "'; --", "é" * 2000])
def test_any_other_title_is_kept_as_it_is(text: str) -> None:
    assert check_title(text) is text


def test_the_limit_counts_bytes() -> None:
    assert check_text("it", "é" * 5, limit=10)
    with pytest.raises(InvalidInput, match="it has 12 bytes"):
        check_text("it", "é" * 6, limit=10)


@given(st.text(), st.integers(2, 50))
def test_one_line_is_printable_and_fits(text: str, width: int) -> None:
    shown = one_line(text, width)
    assert shown.isprintable()
    assert len(shown) <= width
    assert one_line("a \n b\x1b[31m\u202e") == "a b\\x1b[31m\\u202e"


@pytest.mark.parametrize("name", ["bee", "Bee-2", "a_b", "7", "x" * 48])
def test_plain_names_are_kept(name: str) -> None:
    assert check_name("an agent", name) is name


@pytest.mark.parametrize("name", ["", "-bee", "_bee", "bee.2", "a/b", "a b", "béé", "..", "bee.lock", "x" * 49])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid name for an agent"):
        check_name("an agent", name)


def test_nouns_agree_with_their_number() -> None:
    assert [plural(count, "turn") for count in (0, 1, 2, 1200)] == ["0 turns", "1 turn", "2 turns", "1,200 turns"]
    assert plural(2, "branch", "branches") == "2 branches"


def test_states_are_lower_case_words() -> None:
    assert [in_words(state) for state in ("IN_PROGRESS", "working")] == ["in progress", "working"]
