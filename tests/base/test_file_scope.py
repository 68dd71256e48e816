"""Which files a scope covers, and when two scopes overlap."""

from __future__ import annotations

import pytest

from rookery.base.file_scope import is_in_scope, outside_scope, overlapping_patterns, quote_name


def test_what_no_pattern_covers_is_outside() -> None:
    paths = ("src/a.py", "src/deep/b.py", "Src/a.py", "docs/x.md", "-x", "a\nb", "ü.py")
    assert outside_scope(paths, ["src/"]) == ("Src/a.py", "docs/x.md", "-x", "a\nb", "ü.py")
    assert outside_scope(paths, ["./src/*.py", "**/*.md", "[-]x", "a?b", "ü.py"]) == ("src/deep/b.py", "Src/a.py")
    assert outside_scope(paths, ["**"]) == ()


def test_a_folder_on_the_way_to_a_pattern_may_be_made() -> None:
    assert is_in_scope(["src"], ["src/api/x.py"], makes_folder=True)
    assert not is_in_scope(["src"], ["src/api/x.py"])
    assert not is_in_scope(["docs"], ["src/api/x.py"], makes_folder=True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py", "./a.py", True),
        ("a.py", "A.py", False),
        ("src", "src/deep/a.py", True),
        ("src/", "src", True),
        ("src", "srcx", False),
        ("src/*.py", "src/new.py", True),
        ("src/*.py", "src/new.md", False),
        ("src/*", "src/deep/a.py", True),
        ("**/x.py", "src/deep", True),
        ("src/**/x.py", "docs", False),
        ("**", "any/thing", True),
        ("src/*.py", "src/test_*", False),  # only the files that there are can tell
        ("src/[ab].py", "src/a.py", True),
        ("src/[ab].py", "src/c.py", False),
    ],
)
def test_two_patterns_overlap(one: str, other: str, expected: bool) -> None:
    assert bool(overlapping_patterns([one], [other])) is expected
    assert bool(overlapping_patterns([other], [one])) is expected


def test_names_that_could_mislead_are_quoted_and_stay_different() -> None:
    names = ["a.py", "ü.py", "-x", "a b", "a\nb", "a\\nb", "a\tb", "\x1b[31m", "\u202egpj.py", '"a.py"', "\udcff", " a"]
    shown = [quote_name(name) for name in names]
    assert shown[:4] == names[:4]
    assert len(set(shown)) == len(names)
    assert all(text.encode() and text.isprintable() for text in shown)
