"""From what is written to a value, for every kind of key, from YAML and from plain text."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rookery.base.clock import parse_duration
from rookery.config.schema import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TEXTS, Key
from rookery.config.values import BadValue, from_node, from_text, show_duration, show_value

WORD = Key("a.word", TEXT, "")
CHOICE = Key("a.choice", TEXT, "red", choices=("red", "green"))
POWER = Key("a.power", TEXT, "on", choices=("on", "off"))
SWITCH = Key("a.switch", BOOLEAN, False)
COUNT = Key("a.count", INTEGER, 1, minimum=0, maximum=9)
RATIO = Key("a.ratio", NUMBER, 0.5)
WAIT = Key("a.wait", DURATION, 60.0)
NAMES = Key("a.names", TEXTS, ())
COLOURS = Key("a.colours", TEXTS, (), choices=("red", "green"))
MAYBE = Key("a.maybe", TEXT, None, optional=True)


def parsed(key: Key, text: str) -> Any:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    return from_node(key, node)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (WORD, "main", "main"),
        (WORD, "'1.0'", "1.0"),
        (WORD, "''", ""),
        (CHOICE, "green", "green"),
        (POWER, "off", "off"),
        (POWER, "'on'", "on"),
        (SWITCH, "yes", True),
        (SWITCH, "off", False),
        (COUNT, "9", 9),
        (RATIO, "2", 2.0),
        (RATIO, "-0.25", -0.25),
        (WAIT, "90", 90.0),
        (WAIT, "1.5", 1.5),
        (WAIT, "30m", 1800.0),
        (WAIT, "'2h'", 7200.0),
        (NAMES, "[a, 'b c']", ("a", "b c")),
        (NAMES, "[]", ()),
        (COLOURS, "[red]", ("red",)),
        (MAYBE, "null", None),
        (MAYBE, "x", "x"),
    ],
)
def test_yaml_that_fits(key: Key, text: str, value: object) -> None:
    assert parsed(key, text) == value


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        (WORD, "1.0", 'must be text, not a number; put it in quotes: "1.0"'),
        (POWER, "yes", 'put it in quotes: "yes"'),
        (WORD, "no", 'must be text, not true or false; put it in quotes: "no"'),
        (WORD, "2026-01-31", 'must be text, not a date; put it in quotes: "2026-01-31"'),
        (WORD, "[a]", "must be text, not a list"),
        (WORD, "null", "has no value"),
        (WORD, '"a\\0b"', "NUL"),
        (CHOICE, "gren", "one of red, green (did you mean green?)"),
        (SWITCH, "1", "must be true or false, not a number"),
        (SWITCH, "!!bool maybe", "must be true or false"),
        (COUNT, "10", "at most 9"),
        (COUNT, "-1", "at least 0"),
        (COUNT, "1.5", "must be a whole number"),
        (COUNT, "'5'", "must be a whole number, at least 0, at most 9, not text"),
        (COUNT, "!!int many", "must be a whole number"),
        (RATIO, ".inf", "must be a number"),
        (RATIO, "!!float 1e999", "must be a number"),
        (WAIT, "1:30", "no duration"),
        (WAIT, "soon", "no duration; write it as 90s, 30m, 2h or 1d"),
        (WAIT, "0", "no duration"),
        (WAIT, "-5m", "no duration"),
        (WAIT, "true", "must be a duration, not true or false"),
        (NAMES, "a", "must be a list, not text"),
        (NAMES, "[a, 1]", "must hold texts only, not a number"),
        (NAMES, "[[a]]", "must hold texts only, not a list"),
        (COLOURS, "[red, blue]", "must be one of red, green"),
    ],
)
def test_yaml_that_does_not_fit(key: Key, text: str, said: str) -> None:
    with pytest.raises(BadValue) as caught:
        parsed(key, text)
    assert caught.value.message.startswith(("a.", "the "))
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (WORD, "1.0", "1.0"),
        (WORD, "", ""),
        (SWITCH, "TRUE", True),
        (SWITCH, "off", False),
        (COUNT, "7", 7),
        (WAIT, "1d", 86400.0),
        (NAMES, "a, b,,", ("a", "b")),
        (NAMES, "", ()),
        (MAYBE, "", None),
    ],
)
def test_text_that_fits(key: Key, text: str, value: object) -> None:
    assert from_text(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (SWITCH, "2"),
        (COUNT, "many"),
        (COUNT, "9" * 5000),
        (RATIO, "nan"),
        (WAIT, "x"),
        (CHOICE, "Red"),
        (COLOURS, "red,blue"),
        (WORD, "\udcff"),
    ],
)
def test_text_that_does_not_fit(key: Key, text: str) -> None:
    with pytest.raises(BadValue):
        from_text(key, text)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(1800, "30m"), (90, "90s"), (5400, "90m"), (7200, "2h"), (86400, "1d"), (0.5, "0.5s")]
)
def test_durations_are_shown_as_people_write_them(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@given(st.floats(min_value=1e-6, max_value=9e8) | st.integers(1, 900_000_000))
def test_a_shown_duration_is_the_same_when_read(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds, rel=1e-12)


def test_values_are_shown_for_people() -> None:
    assert [show_value(SWITCH, True), show_value(MAYBE, None), show_value(NAMES, ("a", "b")), show_value(COUNT, 3)] == [
        "true",
        "nothing",
        "a, b",
        "3",
    ]
