"""From what is written to a value, for every kind of key, from YAML and from plain text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base.clock import parse_duration
from rookery.base.errors import ConfigInvalid
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.values import show_duration, show_value

WORD = "project.base"
CHOICE = "agents.mode"
POWER = "sandbox.mode"
SWITCH = "merge.clean"
COUNT = "merge.retries"
WAIT = "tasks.lease"
NAMES = "claude.args"
TIERS = "merge.tiers"
PAIRS = "claude.env"


def parsed(folder: Path, name: str, text: str) -> Any:
    section, field = name.split(".")
    path = folder / "config.yaml"
    path.write_text(f"{section}:\n  {field}: {text}\n")
    environ = read_environ({"HOME": str(folder)}).replace(user_config=str(path))
    return load_config(None, environ, {}).entries[name][-1].value


def from_text(name: str, text: str) -> Any:
    return load_config(None, read_environ({"HOME": "/nowhere"}), {name: text}).entries[name][-1].value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        (WORD, "main", "main"),
        (WORD, "'1.0'", "1.0"),
        (WORD, "''", ""),
        (CHOICE, "tmux", "tmux"),
        (POWER, "off", "off"),
        (POWER, "'on'", "on"),
        (SWITCH, "yes", True),
        (SWITCH, "off", False),
        (COUNT, "5", 5),
        (COUNT, "'5'", 5),
        (WAIT, "90", 90.0),
        (WAIT, "1.5", 1.5),
        (WAIT, "30m", 1800.0),
        (WAIT, "'2h'", 7200.0),
        (NAMES, "[a, 'b c']", ("a", "b c")),
        (NAMES, "[]", ()),
        (TIERS, "[agent]", ("agent",)),
        (PAIRS, "{A: b, C: ''}", {"A": "b", "C": ""}),
    ],
)
def test_yaml_that_fits(tmp_path: Path, name: str, text: str, value: object) -> None:
    assert parsed(tmp_path, name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (WORD, "1.0", 'must hold text, and YAML takes 1.0 for something else; put it in quotes: "1.0"'),
        (WORD, "no", 'put it in quotes: "no"'),
        (WORD, "2026-01-31", 'put it in quotes: "2026-01-31"'),
        (WORD, "[a]", "must be text, not a list"),
        (WORD, "null", "has no value; remove the line, or give it text"),
        (WORD, '"a\\0b"', "NUL"),
        (POWER, "yes", "is 'yes'; it must be one of auto, on, off"),
        (CHOICE, "tmx", "is 'tmx'; it must be one of headless, tmux (did you mean tmux?)"),
        (SWITCH, "7", "is '7'; it must be true or false"),
        (SWITCH, "!!bool maybe", "must be true or false"),
        (COUNT, "6", "is '6'; it must be a whole number, at least 0, at most 5"),
        (COUNT, "-1", "at least 0"),
        (COUNT, "1.5", "must be a whole number"),
        (COUNT, "!!int many", "must be a whole number"),
        (COUNT, "{a: b}", "at most 5, not a mapping"),
        (WAIT, "1:30", "not a duration"),
        (WAIT, "soon", "not a duration; write it as 90s, 30m, 2h or 1d"),
        (WAIT, "0", "not a duration"),
        (WAIT, ".inf", "not a duration"),
        (WAIT, "-5m", "not a duration"),
        (WAIT, "true", "not a duration"),
        (WAIT, "[1h]", "must be a duration, not a list"),
        (NAMES, "a", "must be a list of texts, not text"),
        (NAMES, "[a, 1]", 'put it in quotes: "1"'),
        (NAMES, "[[a]]", "must be a list of texts, and holds a list"),
        (NAMES, "[~]", "must be a list of texts, and holds nothing"),
        (TIERS, "[agent, agnt]", "must be a list of texts of mechanical, agent, reimagine (did you mean agent?)"),
        (PAIRS, "a", "must be a mapping of names to texts, not text"),
        (PAIRS, "{A: 1}", 'put it in quotes: "1"'),
        (PAIRS, "{A: {}}", "must be a mapping of names to texts, and holds a mapping"),
        (PAIRS, "{a-b: c}", "holds 'a-b', which is not a valid variable name"),
    ],
)
def test_yaml_that_does_not_fit(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parsed(tmp_path, name, text)
    assert f": {name} " in caught.value.message
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        (WORD, "1.0", "1.0"),
        (WORD, "", ""),
        (SWITCH, "TRUE", True),
        (SWITCH, "off", False),
        (COUNT, "3", 3),
        (WAIT, "1d", 86400.0),
        (NAMES, "a, b,,", ("a", "b")),
        (NAMES, "", ()),
        (PAIRS, "A=b=c, D=", {"A": "b=c", "D": ""}),
        (PAIRS, "", {}),
    ],
)
def test_text_that_fits(name: str, text: str, value: object) -> None:
    assert from_text(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (SWITCH, "2"),
        (COUNT, "many"),
        (COUNT, "9" * 5000),
        (WAIT, "x"),
        (WAIT, "nan"),
        (CHOICE, "Tmux"),
        (TIERS, "agent,blue"),
        (WORD, "\udcff"),
        (PAIRS, "A=b, c"),
        ("gates", "[{name: a"),
        ("gates", "[" * 50_000),
        ("gates", "{name: a, run: b}"),
        ("gates", "{}"),
    ],
)
def test_text_that_does_not_fit(name: str, text: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"^-c {name}: "):
        from_text(name, text)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(1800, "30m"), (90, "90s"), (5400, "90m"), (7200, "2h"), (86400, "1d"), (0.5, "0.5s")]
)
def test_durations_are_shown_as_people_write_them(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@given(st.floats(min_value=1e-6, max_value=9e8) | st.integers(1, 900_000_000))
def test_a_shown_duration_is_the_same_when_read(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds, rel=1e-12)


def test_values_are_shown_for_people() -> None:
    shown = [show_value(value) for value in (True, 90.0, ("a", "b"), 3, {"A": "b"}, "text")]
    assert shown == ["true", "90s", "a, b", "3", "A=b", "text"]
