"""Which files a scope covers, and when two scopes overlap."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rookery.base.errors import InvalidInput
from rookery.base.file_scope import check_patterns, is_in_scope, outside_scope, overlapping_patterns, quote_name


def test_what_no_pattern_covers_is_outside() -> None:
    paths = ("src/a.py", "src/deep/b.py", "Src/a.py", "docs/x.md", "-x", "a\nb", "ü.py")
    assert outside_scope(paths, ["src/"]) == ("Src/a.py", "docs/x.md", "-x", "a\nb", "ü.py")
    assert outside_scope(paths, ["./src/*.py", "**/*.md", "[-]x", "a?b", "ü.py"]) == ("src/deep/b.py", "Src/a.py")
    assert outside_scope(paths, ["**"]) == ()


def test_a_name_with_the_characters_of_a_pattern_also_stands_for_itself() -> None:
    assert outside_scope(["app/[id]/page.tsx", "app/i/page.tsx", "app/x/page.tsx"], ["app/[id]"]) == ("app/x/page.tsx",)
    assert overlapping_patterns(["app/[id]"], ["app/?id?/page.tsx"])
    assert not overlapping_patterns(["app/[id]"], ["app/x?"])


@pytest.mark.parametrize("pattern", ["/etc", "/", "~/x", "../x", "src/../..", "{a", "b}"])
def test_what_can_name_no_file_of_the_repository_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        check_patterns(["src", pattern])


def test_many_stars_in_a_row_take_no_longer_than_one() -> None:
    assert outside_scope(["/".join("a" * 60)], ["**/" * 60 + "b"]) == ("/".join("a" * 60),)


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
        ("src/*.py", "src/test_*", True),  # there may be no such file yet
        ("src/*.py", "src/*.md", False),
        ("src/a*", "src/*.py", True),
        ("src/a*c", "src/ab*", True),
        ("src/a*c", "src/b*", False),
        ("a?", "a", False),
        ("a?", "?b", True),
        ("a*?", "a", False),
        ("[a-m]x", "[n-z]x", False),
        ("[a-m]x", "[!a-l]x", True),
        ("[!a]", "[a]", False),
        ("[!a]", "[!b]", True),
        ("[]x]", "]", True),
        ("[", "[", True),
        ("[a", "a", False),
        ("[.-0]", "0", True),
        ("a/**/x", "a/b/c/*", True),
        ("**/**/**/**/**/**/**/**/x/y", "a/**/**/**/**/**/**/**/**/z/y/w", True),
        ("**/x.py/q", "**/y.py", True),  # as a folder
        ("a/*/c", "a/b/d", False),
        ("src/[ab].py", "src/a.py", True),
        ("src/[ab].py", "src/c.py", False),
    ],
)
def test_two_patterns_overlap(one: str, other: str, expected: bool) -> None:
    assert bool(overlapping_patterns([one], [other])) is expected
    assert bool(overlapping_patterns([other], [one])) is expected


NAMES = st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "[a-c]", "**/", "/", "]", "["]), max_size=6)


@given(NAMES, NAMES, st.lists(st.sampled_from("abc]["), min_size=1, max_size=3))
def test_patterns_that_cover_the_same_path_overlap(one: list[str], other: list[str], path: list[str]) -> None:
    ours, theirs, name = "".join(one), "".join(other), "".join(path)
    for parts in ([name], list(name)):
        if is_in_scope(parts, [ours]) and is_in_scope(parts, [theirs]):
            assert overlapping_patterns([ours], [theirs])


@given(
    *[st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]"]), min_size=1, max_size=4).map("".join)] * 2,
)
def test_names_that_overlap_have_a_name_in_common(one: str, other: str) -> None:
    assume("**" not in (one, other))
    names = (one, other, *("".join(chars) for size in range(1, 9) for chars in product("abc", repeat=size)))
    has_common = any(all(name == part or fnmatchcase(name, part) for part in (one, other)) for name in names)
    assert bool(overlapping_patterns([one], [other])) is has_common


def test_names_that_could_mislead_are_quoted_and_stay_different() -> None:
    names = ["a.py", "ü.py", "-x", "a b", "a\nb", "a\\nb", "a\tb", "\x1b[31m", "\u202egpj.py", '"a.py"', "\udcff", " a"]
    shown = [quote_name(name) for name in names]
    assert shown[:4] == names[:4]
    assert len(set(shown)) == len(names)
    assert all(text.encode() and text.isprintable() for text in shown)
