"""The loss check knows nothing of rules: it counts."""

from __future__ import annotations

import pytest

from rookery.merge.resolve.loss import check
from rookery.merge.resolve.model import ADDED_MISSING, DELETED_BACK, KEPT_MISSING, Loss, Sides


def lost(base: str, ours: str, theirs: str, result: str, *covered: Loss) -> list[Loss]:
    """Each letter is a line."""
    base, ours, theirs, result = ("".join(f"{letter}\n" for letter in text) for text in (base, ours, theirs, result))
    return check(Sides("f", base.encode(), ours.encode(), theirs.encode()), result.encode(), covered)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("ab", "axb", "ayb", "axyb"),
        ("ab", "axb", "axb", "axb"),
        ("ab", "b", "ab", "b"),
        ("abc", "bc", "ab", "b"),
        ("abc", "cab", "abc", "bca"),
        ("ab", "axb", "ab", "axnewb"),
        ("aa", "a", "aa", "a"),
        ("a", "aa", "", "a"),
    ],
    ids=[
        "both added",
        "added once",
        "deleted",
        "both deleted",
        "moved",
        "new lines",
        "one of two",
        "added and deleted",
    ],
)
def test_nothing_is_lost(base: str, ours: str, theirs: str, result: str) -> None:
    assert lost(base, ours, theirs, result) == []


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result", "loss"),
    [
        ("ab", "axb", "ayb", "axb", Loss("theirs", ADDED_MISSING, "y", 1)),
        ("ab", "axb", "ayb", "ayb", Loss("ours", ADDED_MISSING, "x", 1)),
        ("ab", "axxb", "ab", "axb", Loss("ours", ADDED_MISSING, "x", 1)),
        ("ab", "b", "axb", "axb", Loss("ours", DELETED_BACK, "a", 1)),
        ("ab", "ab", "b", "ab", Loss("theirs", DELETED_BACK, "a", 1)),
        ("abc", "axbc", "abc", "axc", Loss("both", KEPT_MISSING, "b", 1)),
    ],
)
def test_a_lost_line_is_named(base: str, ours: str, theirs: str, result: str, loss: Loss) -> None:
    assert lost(base, ours, theirs, result) == [loss]


def test_what_a_rule_answers_for_is_forgiven_as_often_as_it_says() -> None:
    cover = Loss("theirs", ADDED_MISSING, "y")

    assert lost("ab", "axb", "ayb", "axb", cover) == []
    assert lost("ab", "axb", "ayyb", "axb", cover) == [Loss("theirs", ADDED_MISSING, "y", 1)]
    assert lost("ab", "axb", "ayb", "ab", cover) == [Loss("ours", ADDED_MISSING, "x", 1)]


def test_a_result_that_is_not_text_has_lost_everything() -> None:
    assert check(Sides("f", b"a\n", b"a\nx\n", b"a\n"), b"\xff")


def test_whitespace_counts_unless_a_rule_answers_for_it() -> None:
    assert check(Sides("f", b"a\n", b"  a\n", b"a\nb\n"), b"a\nb\n")
