"""What keys there are, read from the classes of `model.py`: type, default, limits and documentation.

There is no second list: the loader, the written configuration and the reference all ask here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from rookery.base.record import Record
from rookery.config.model import Config

_WORDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "duration",
    tuple: "list of texts",
    dict: "mapping of names to texts",
}


@dataclass(frozen=True, slots=True)
class Key(Record):
    """One setting: what it may hold and what it is for."""

    name: str
    kind: type
    """The class of its values."""
    default: Any
    documentation: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    items: tuple[Key, ...] = ()
    """What each mapping of a list may hold; the first names the mapping, and no two have the same."""
    required: bool = False

    @property
    def section(self) -> str:
        """The first half of its name."""
        return self.name.partition(".")[0]

    @property
    def field(self) -> str:
        """The second half of its name; empty for a section that is a list."""
        return self.name.partition(".")[2]

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "ROOKERY_" + self.name.replace(".", "_").upper()

    @property
    def accepts(self) -> str:
        """What it may hold, in words."""
        if self.items:
            fields = (item.field + ("" if item.required else "?") for item in self.items)
            return f"list of mappings with {', '.join(fields)}"
        words = _WORDS[self.kind]
        if self.choices:
            words = ("one of " if self.kind is str else f"{words} of ") + ", ".join(self.choices)
        if self.minimum is not None:
            words += f", at least {self.minimum}"
        if self.maximum is not None:
            words += f", at most {self.maximum}"
        return words


@dataclass(frozen=True, slots=True)
class Section(Record):
    """Keys that belong together."""

    name: str
    documentation: str
    keys: tuple[Key, ...]

    @property
    def is_list(self) -> bool:
        """True if it holds a list of mappings instead of keys."""
        return bool(self.keys[0].items)


@cache
def sections() -> dict[str, Section]:
    """Every section of the configuration, in the order of `model.py`."""
    return read_sections(Config)


@cache
def keys() -> dict[str, Key]:
    """Every key by its dotted name, in the order of `model.py`."""
    return {key.name: key for section in sections().values() for key in section.keys}


def read_sections(model: Any) -> dict[str, Section]:
    """The sections that a class of sections declares."""
    return {name: _read_section(name, field) for name, field in model.__pydantic_fields__.items()}


def _read_section(name: str, field: FieldInfo) -> Section:
    is_list = get_origin(field.annotation) is tuple
    model: Any = get_args(field.annotation)[0] if is_list else field.annotation
    found = tuple(_read_key(f"{name}.{each}", inner) for each, inner in model.__pydantic_fields__.items())
    if is_list:  # one key, whose value is the whole list
        found = (Key(name, tuple, (), field.description or "", items=found),)
    return Section(name, inspect.cleandoc(model.__doc__ or ""), found)


def _read_key(name: str, field: FieldInfo) -> Key:
    kind: Any = get_origin(field.annotation) or field.annotation
    inner = get_args(field.annotation)[0] if kind is tuple else field.annotation
    choices = get_args(inner) if get_origin(inner) is Literal else ()
    kind = str if kind is Literal else kind
    if kind not in _WORDS:
        raise TypeError(f"{name} has a type that no configuration file can hold: {field.annotation}")
    limits = {limit: getattr(part, limit) for part in field.metadata for limit in ("ge", "le") if hasattr(part, limit)}
    return Key(
        name,
        kind,
        None if field.is_required() else field.get_default(call_default_factory=True),
        field.description or "",
        choices,
        limits.get("ge"),
        limits.get("le"),
        required=field.is_required(),
    )
