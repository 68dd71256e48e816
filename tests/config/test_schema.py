"""Keys are read from dataclasses: types, defaults, limits and documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from rookery.config.model import Config
from rookery.config.schema import keys, read_sections, sections
from rookery.config.values import Limits


@dataclass(frozen=True)
class Shapes:
    """Every shape that a key can have."""

    word: str = "a"
    """A word."""
    switch: bool = True
    count: Annotated[int, Limits(1, 9)] = 3
    """How many,
    on two lines."""
    colour: Literal["red", "green"] = "red"
    wait: float = 60.0
    names: tuple[str, ...] = ("x",)
    colours: tuple[Literal["red", "green"], ...] = ()
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """Two words, so that the section's name differs from its class."""

    shapes: Shapes = field(default_factory=Shapes)


@dataclass(frozen=True)
class Strange:
    """A type that YAML cannot hold."""

    thing: complex = 1j


@dataclass(frozen=True)
class StrangeModel:
    """Holds it."""

    strange: Strange = field(default_factory=Strange)


def test_every_field_type_has_a_kind() -> None:
    kinds = {key.field: key.kind for key in read_sections(Model)["shapes"].keys}
    assert kinds == {
        "word": str,
        "switch": bool,
        "count": int,
        "colour": str,
        "wait": float,
        "names": tuple,
        "colours": tuple,
        "env": dict,
    }


def test_defaults_limits_and_documentation_come_along() -> None:
    shapes = {key.field: key for key in read_sections(Model)["shapes"].keys}
    assert (shapes["env"].default, shapes["names"].default) == ({}, ("x",))
    assert shapes["word"].documentation == "A word."
    assert shapes["switch"].documentation == ""
    assert shapes["count"].documentation == "How many,\non two lines."
    assert shapes["count"].accepts == "whole number, at least 1, at most 9"
    assert shapes["count"].variable == "ROOKERY_SHAPES_COUNT"
    assert shapes["colour"].accepts == "one of red, green"
    assert shapes["colours"].accepts == "list of texts of red, green"
    assert (shapes["wait"].accepts, shapes["env"].accepts) == ("duration", "mapping of names to texts")


def test_a_type_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match=r"strange\.thing"):
        read_sections(StrangeModel)


def test_every_key_of_ours_is_documented() -> None:
    assert all(section.documentation for section in sections().values())
    assert all(key.documentation.endswith(".") for key in keys().values())


def test_every_default_of_ours_is_the_models() -> None:
    config = Config()
    for name, key in keys().items():
        section = getattr(config, key.section)
        assert (getattr(section, key.field) if key.field else section) == key.default, name
