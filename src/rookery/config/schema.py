"""What keys there are, read from the classes of `model.py`: type, default, limits and documentation.

There is no second list: the loader, the written configuration and the reference all ask here.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from rookery.base.record import Record
from rookery.config.model import Config
from rookery.config.values import Limits

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
    model: type
    """The class that declares it."""
    choices: tuple[str, ...] = ()
    limits: Limits | None = None
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
    def documentation(self) -> str:
        """What it is for: the string under it."""
        return _read_documentation(self.model).get(self.name.rpartition(".")[2], "")

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
        if self.limits is not None:
            words += f", at least {self.limits.minimum}"
            words += "" if self.limits.maximum is None else f", at most {self.limits.maximum}"
        return words


@dataclass(frozen=True, slots=True)
class Section(Record):
    """Keys that belong together."""

    name: str
    model: type
    keys: tuple[Key, ...]

    @property
    def documentation(self) -> str:
        """What the keys are about."""
        return inspect.cleandoc(self.model.__doc__ or "")

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
    hints = get_type_hints(model, include_extras=True)
    return {field.name: _read_section(field.name, hints[field.name], model) for field in fields(model)}


def _read_section(name: str, hint: Any, owner: type) -> Section:
    bare, _marks = _split(hint)
    is_list = get_origin(bare) is tuple
    model: Any = get_args(bare)[0] if is_list else bare
    hints = get_type_hints(model, include_extras=True)
    keys = tuple(_read_key(f"{name}.{field.name}", field, hints[field.name], model) for field in fields(model))
    if is_list:  # one key, whose value is the whole list
        keys = (Key(name, tuple, (), owner, items=keys),)
    return Section(name, model, keys)


def _read_key(name: str, field: Field[Any], hint: Any, model: type) -> Key:
    bare, marks = _split(hint)
    kind: Any = get_origin(bare) or bare
    inner = get_args(bare)[0] if kind is tuple else bare
    choices = get_args(inner) if get_origin(inner) is Literal else ()
    kind = str if kind is Literal else kind
    if kind not in _WORDS:
        raise TypeError(f"{name} has a type that no configuration file can hold: {bare}")
    limits = next((mark for mark in marks if isinstance(mark, Limits)), None)
    required = field.default is MISSING and field.default_factory is MISSING
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return Key(name, kind, None if required else default, model, choices, limits, required=required)


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and the marks that stand beside it in `Annotated`."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


@cache
def _read_documentation(model: type) -> dict[str, str]:
    """The strings under the fields of a class."""
    body = ast.parse(inspect.getsource(model)).body[0].body  # type: ignore[attr-defined]
    texts = {}
    for statement, following in pairwise(body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
