"""What keys there are, read from the classes of `model.py`: type, default, limits and documentation.

There is no second list: the loader, the written configuration and the reference all ask here.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from rookery.base.record import Record
from rookery.config.model import Config

TEXT = "text"
BOOLEAN = "true or false"
INTEGER = "whole number"
NUMBER = "number"
DURATION = "duration"
TEXTS = "list of texts"
MAPPING = "mapping of names to texts"
ITEMS = "list of mappings"

_KINDS: dict[object, str] = {str: TEXT, bool: BOOLEAN, int: INTEGER, float: NUMBER, dict[str, str]: MAPPING}
_COLLECTIONS: dict[object, str] = {tuple: TEXTS, list: TEXTS}


@dataclass(frozen=True, slots=True)
class Key(Record):
    """One setting: what it may hold and what it is for."""

    name: str
    kind: str
    default: Any
    documentation: str = ""
    optional: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    items: tuple[Key, ...] = ()
    """What each mapping of a list may hold; the first names the mapping, and no two have the same."""
    build: Any = None
    """Makes one of the list's values."""
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
        if self.kind == ITEMS:
            shown = (each.name.partition(".")[2] + ("" if each.required else "?") for each in self.items)
            return f"list of mappings with {', '.join(shown)}"
        words = "one of " + ", ".join(self.choices) if self.choices and self.kind == TEXT else self.kind
        if self.choices and self.kind == TEXTS:
            words += " of " + ", ".join(self.choices)
        if self.minimum is not None:
            words += f", at least {self.minimum:g}"
        if self.maximum is not None:
            words += f", at most {self.maximum:g}"
        return words + (", or nothing" if self.optional else "")


@dataclass(frozen=True, slots=True)
class Section(Record):
    """Keys that belong together."""

    name: str
    documentation: str
    keys: tuple[Key, ...]

    @property
    def is_list(self) -> bool:
        """True if it holds a list of mappings instead of keys."""
        return self.keys[0].kind == ITEMS


@cache
def sections() -> dict[str, Section]:
    """Every section of the configuration, in the order of `model.py`."""
    return read_sections(Config)


@cache
def keys() -> dict[str, Key]:
    """Every key by its dotted name, in the order of `model.py`."""
    return {key.name: key for section in sections().values() for key in section.keys}


def read_sections(model: type) -> dict[str, Section]:
    """The sections that a class of sections declares."""
    documented = _field_docstrings(model)
    return {
        name: _read_list(name, get_args(section)[0], documented.get(name, ""))
        if get_origin(section) is tuple
        else _read_section(name, section)
        for name, section in _field_types(model).items()
    }


def _field_types(model: type) -> dict[str, type]:
    hints = get_type_hints(model)
    return {found.name: hints[found.name] for found in fields(model)}


def _read_section(name: str, model: type) -> Section:
    documented = _field_docstrings(model)
    hints = get_type_hints(model)
    found = tuple(
        _read_key(f"{name}.{one.name}", one, hints[one.name], documented.get(one.name, "")) for one in fields(model)
    )
    return Section(name, inspect.cleandoc(model.__doc__ or ""), found)


def _read_list(name: str, model: type, documentation: str) -> Section:
    """A section that is a list of mappings: one key, whose value is the whole list."""
    inner = _read_section(name, model)
    return Section(name, inner.documentation, (Key(name, ITEMS, (), documentation, items=inner.keys, build=model),))


def _read_key(name: str, declared: Field[Any], hint: Any, documentation: str) -> Key:
    optional, inner = _unwrap(hint)
    limits = declared.metadata
    kind = _COLLECTIONS.get(get_origin(inner)) or _KINDS.get(inner)
    if kind is None:
        raise TypeError(f"{name} has a type that no configuration file can hold: {hint}")
    is_required = declared.default is MISSING and declared.default_factory is MISSING
    default = declared.default if declared.default_factory is MISSING else declared.default_factory()
    return Key(
        name,
        DURATION if limits.get("duration") else kind,
        None if is_required else default,
        documentation,
        optional,
        tuple(limits.get("choices", ())),
        limits.get("minimum"),
        limits.get("maximum"),
        required=is_required,
    )


def _unwrap(hint: Any) -> tuple[bool, Any]:
    """Whether the type allows None, and the type without it."""
    if get_origin(hint) not in (Union, types.UnionType):
        return False, hint
    others = [one for one in get_args(hint) if one is not types.NoneType]
    return len(others) < len(get_args(hint)), others[0] if len(others) == 1 else hint


def _field_docstrings(model: type) -> dict[str, str]:
    """The string beneath each field. Python drops it, so it is read from the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101
    found = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found[statement.target.id] = inspect.cleandoc(after.value.value)
    return found
