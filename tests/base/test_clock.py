from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base.clock import is_stamp, length, parse_duration, seconds_of, stamp, time_of_day, when
from rookery.base.errors import InvalidInput


@given(st.lists(st.integers(0, 4_000_000_000_000), min_size=2, max_size=2))
def test_stamps_sort_as_the_times_do(millis: list[int]) -> None:
    early, late = sorted(millis)
    assert stamp(early / 1000) <= stamp(late / 1000)
    assert is_stamp(stamp(early / 1000))


def test_a_stamp_is_utc_with_milliseconds() -> None:
    assert stamp(0) == "1970-01-01T00:00:00.000Z"
    assert stamp(1_769_860_800.0005) == "2026-01-31T12:00:00.000Z"
    assert stamp(1_769_860_799.9996) == "2026-01-31T12:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.000",
        "2026-01-31T12:00:00.000z",
        "2026-01-31 12:00:00.000Z",
        "2026-02-30T12:00:00.000Z",
        "2026-13-01T12:00:00.000Z",
        "2026-01-31T12:00:00.00xZ",
        "2026-01-31T12:00:00.0000Z",
        "2026-01-31T12:00:00.\u0660\u0660\u0660Z",
        "\uff12026-01-31T12:00:00.000Z",
    ],
)
def test_what_would_not_sort_as_a_stamp_is_none(text: str) -> None:
    assert not is_stamp(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0", "0m", "-5", "-1h", "5w", "1h30m", "nan", "inf", "nand", "1e9", "soon"])
def test_what_is_no_duration_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a duration") as caught:
        parse_duration(text)
    assert "30m" in caught.value.hint


def test_a_length_of_time_is_shown_in_its_largest_unit() -> None:
    assert [length(seconds) for seconds in (-1, 0, 59.9, 60, 7_199, 7_200, 200_000)] == [
        *("0s", "0s", "59s", "1m", "1h", "2h", "2d")
    ]


def test_people_see_how_long_ago_it_was_and_dates_in_their_own_time_zone() -> None:
    berlin, now = ZoneInfo("Europe/Berlin"), seconds_of("2026-07-02T12:00:00.000Z")
    cases = {0.2: "now", 5: "5s ago", 720: "12m ago", 86_399: "23h ago", -3_600: "in 1h", 86_400: "2026-07-01 14:00"}
    assert {ago: when(stamp(now - ago), now, berlin) for ago in cases} == cases
    assert when("2026-01-01T12:00:00.000Z", now, UTC) == "2026-01-01 12:00 UTC"
    assert time_of_day("2026-07-02T11:00:00.000Z", now, berlin) == "13:00:00"
    assert time_of_day("2026-07-01T22:30:00.000Z", now, berlin) == "00:30:00", "it is today there already"
    assert time_of_day("2026-06-30T22:30:00.000Z", now, UTC) == "2026-06-30 22:30:00 UTC"
