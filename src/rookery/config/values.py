"""The types of settings that are written as text, and how values are shown.

Numbers and durations are read from their text, not by YAML's own rules: to YAML `1:30` is the number 90.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Annotated, Any

from rookery.base.clock import parse_duration
from rookery.base.errors import InvalidInput
from rookery.base.text import check_text

_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


@dataclass(frozen=True, slots=True)
class Check:
    """Marks a type: pydantic also reads its values by this function, before or after it checks the type."""

    read: Callable[[Any], Any]
    after: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # takes 75 ms with pydantic, and most commands have nothing to check

        if self.after:
            return core_schema.no_info_after_validator_function(self.read, handler(source))
        return core_schema.no_info_before_validator_function(self.read, handler(source))


@dataclass(frozen=True, slots=True)
class Limits:
    """Marks a number: it must be in this range."""

    minimum: int
    maximum: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        maximum = {} if self.maximum is None else {"le": self.maximum}
        return {**handler(source), "ge": self.minimum, **maximum}


class Unquoted(str):
    """A word that YAML takes for something else than text, such as `1.0`, `no` or `2026-01-31`."""

    __slots__ = ()


def _check_text(value: Any) -> Any:
    if isinstance(value, Unquoted):
        raise ValueError(f'must hold text, and YAML takes {value} for something else; put it in quotes: "{value}"')  # noqa: TRY004
    try:
        return check_text("", value) if isinstance(value, str) else value
    except InvalidInput as error:
        raise ValueError(error.message.strip()) from error


def _parse_duration(value: Any) -> Any:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except InvalidInput as error:
        raise ValueError(f"is {value!r}, which is not a duration; {error.hint}") from error


def _check_variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"holds {name!r}, which is not a valid variable name")
    return name


Text = Annotated[str, Check(_check_text)]
Texts = tuple[Text, ...]
Variables = dict[Annotated[Text, Check(_check_variable, after=True)], Text]
Duration = Annotated[float, Check(_parse_duration)]


def show_duration(seconds: float) -> str:
    """Seconds as people write them, so that `parse_duration` gives the same number back."""
    for unit, size in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds!r}s"


def show_value(value: Any) -> str:
    """A value as people write it; a number with a fraction is a duration."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_duration(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, tuple):
        return ", ".join(item if isinstance(item, str) else item.name for item in value)
    return str(value)


def plain_value(value: Any) -> Any:
    """A value as programs get it."""
    if not isinstance(value, tuple) or all(isinstance(item, str) for item in value):
        return value
    return [asdict(item) for item in value]


def did_you_mean(word: str, known: list[str]) -> str:
    """A suggestion in brackets to append to a message, or nothing."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
