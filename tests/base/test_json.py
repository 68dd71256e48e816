"""JSON without `json`: the same values and the same texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base.json import dumps, loads
from rookery.base.record import Record
from support import SOURCE

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_it_writes_and_reads_what_the_standard_library_does(value: Any) -> None:
    text = dumps(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert loads(text) == value
    assert loads(json.dumps(value, indent=2)) == value
    assert loads(text.encode("utf-8", "surrogatepass") if text.isascii() else text) == value


@given(st.text(max_size=30) | st.text(alphabet='{}[]",:0123e-.tnu \\', max_size=30))
def test_it_refuses_what_the_standard_library_refuses(text: str) -> None:
    assert _attempt(loads, text) == _attempt(json.loads, text)


def _attempt(read: Callable[[str], Any], text: str) -> Any:
    try:
        return repr(read(text))  # as text, because NaN is not equal to itself
    except ValueError:
        return ValueError


def test_values_of_ours_are_written_by_default() -> None:
    class Point(Record):
        x: int

    assert dumps({"at": Point(1)}, default=lambda value: value.as_dict()) == '{"at":{"x":1}}'
    with pytest.raises(TypeError, match="Point"):
        dumps(Point(1))


def test_a_circle_and_endless_nesting_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="ircular"):
        dumps(circle)
    with pytest.raises(RecursionError):
        loads("[" * 100_000)


@pytest.mark.parametrize("text", ["{", "[1,", '"', "tru", "{} x", "", '{"a" 1}', "nan", "'a'"])
def test_a_mistake_is_told_where_nothing_else_is_loaded(text: str) -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); from rookery.base.json import loads\n"
    script += "try: loads(sys.argv[2])\nexcept ValueError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, SOURCE, text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "char" in done.stdout
