"""The diff and the three-way merge of lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rookery.merge.resolve.diff import matching
from rookery.merge.resolve.regions import regions

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "}"]), max_size=25)


@given(LINES, LINES)
def test_what_matches_is_in_both_and_in_order(left: list[str], right: list[str]) -> None:
    reached = (0, 0)
    for i, j, size in matching(left, right):
        assert size > 0
        assert i >= reached[0]
        assert j >= reached[1]
        assert left[i : i + size] == right[j : j + size]
        reached = (i + size, j + size)


@given(LINES)
def test_the_same_lines_all_match(lines: list[str]) -> None:
    assert matching(lines, lines) == ([(0, 0, len(lines))] if lines else [])


def test_lines_that_are_too_frequent_to_anchor_still_match() -> None:
    left = ["x"] * 200
    right = ["x"] * 80 + ["y"] + ["x"] * 119

    assert sum(size for _, _, size in matching(left, right)) == 199


def test_functions_match_functions_and_not_their_braces() -> None:
    one = ["func one() {", "}", ""]
    two = ["func two() {", "}", ""]

    assert matching(two, one + two) == [(0, 3, 3)]


def test_an_insertion_is_seen_as_far_down_as_it_can_be() -> None:
    assert matching(["one", "", "two"], ["new", "one", "", "x", "", "two"]) == [(0, 1, 2), (2, 5, 1)]


@given(LINES, LINES)
def test_a_side_that_changed_nothing_gives_way(base: list[str], side: list[str]) -> None:
    for parts in (regions(base, base, side), regions(base, side, base)):
        merged: list[str] = []
        for region in parts:
            assert region.settled is not None
            merged += region.settled
        assert merged == side


@given(LINES, LINES, LINES)
def test_regions_tile_all_three_versions(base: list[str], ours: list[str], theirs: list[str]) -> None:
    parts = list(regions(base, ours, theirs))

    assert [line for region in parts for line in region.base] == base
    assert [line for region in parts for line in region.ours] == ours
    assert [line for region in parts for line in region.theirs] == theirs
    for region in parts:
        assert tuple(base[region.start : region.start + len(region.base)]) == region.base
        assert tuple(ours[region.ours_start : region.ours_start + len(region.ours)]) == region.ours
        assert tuple(theirs[region.theirs_start : region.theirs_start + len(region.theirs)]) == region.theirs


@given(LINES, LINES, LINES)
def test_it_does_not_matter_who_is_ours(base: list[str], ours: list[str], theirs: list[str]) -> None:
    one = [region.settled for region in regions(base, ours, theirs)]
    other = [region.settled for region in regions(base, theirs, ours)]

    assert one == other


def test_changes_that_touch_are_in_conflict() -> None:
    settled = [region.settled for region in regions(["a", "b", "c"], ["A", "b", "c"], ["a", "B", "c"])]

    assert settled[0] is None


def test_changes_with_a_line_between_them_are_not() -> None:
    settled = [region.settled for region in regions(["a", "b", "c"], ["A", "b", "c"], ["a", "b", "C"])]

    assert [line for lines in settled for line in lines or ["conflict"]] == ["A", "b", "C"]


def test_two_functions_at_the_same_place_are_in_conflict_however_their_blank_lines_are_seen() -> None:
    base = ["def a():", "    pass", "", "", "def z():", "    pass"]
    ours = [*base[:4], "def ours():", "    pass", "", "", *base[4:]]
    theirs = [*base[:2], "", "", "def theirs():", "    return", *base[2:]]

    assert any(region.settled is None for region in regions(base, ours, theirs))
