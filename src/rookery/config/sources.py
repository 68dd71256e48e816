"""One source of settings, a file, a variable or a flag: its values by key, and every mistake in it at its place.

A file is composed into nodes and never constructed into objects, because only nodes know where they stand. pydantic
checks the plain words that are in them, and its errors name the place by a path of keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from rookery.base.record import Record
from rookery.config import yaml_file
from rookery.config.model import Config
from rookery.config.schema import Key, keys, sections
from rookery.config.values import Unquoted, did_you_mean
from rookery.config.yaml_file import MAX_DEPTH, Mistakes, Stop, compose, place_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

_MAX_VALUES = 10_000
_SHOWN = {list: "a list", dict: "a mapping", type(None): "nothing"}
_KEY = "[key]"
"""Ends the path of a key itself, here and in pydantic's errors; without it, the path is that of the key's value."""

Path = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Origin(Record):
    """Where a value comes from: its layer, and the file and line, the variable or the flag."""

    layer: str
    source: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.layer if not self.source else self.source + (f":{self.line}" if self.line else "")


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """The value that one layer gives to a key."""

    value: Any
    origin: Origin


def read_file(layer: str, path: str) -> Source:
    """Read a configuration file. One that is not there, or holds comments only, says nothing."""
    source = Source(layer, path)
    if os.path.lexists(path):
        source.read(lambda: source.parse(yaml_file.read_text(path)))
    return source


def read_text(layer: str, name: str, key: str, text: str) -> Source:
    """Read what a variable or a flag of that name gives to a key."""
    source = Source(layer, name, has_lines=False)
    source.read(lambda: source.split(key, text))
    return source


class Source(Mistakes):
    """What one source says of each key, and what is wrong with it."""

    def __init__(self, layer: str, name: str, *, has_lines: bool = True) -> None:
        super().__init__(name, has_lines=has_lines)
        self.values: dict[str, Entry] = {}
        self._layer = layer
        self._nodes: dict[Path, yaml.Node] = {}

    def read(self, make_tree: Callable[[], Any]) -> None:
        """Check what the source holds."""
        try:
            self._check(make_tree())
        except Stop as stop:
            self.note(stop.message, stop.place)
        self.noted.sort()

    def parse(self, text: str) -> Any:
        """What YAML holds, as lists, mappings and texts; a section without keys is left out."""
        root = compose(text)
        plain = None if root is None else self._plain(root, ())
        if isinstance(plain, dict):
            return {name: value for name, value in plain.items() if value is not None}
        return plain

    def split(self, name: str, text: str) -> Any:
        """What a text gives to a key, as a file would hold it.

        A list is separated by commas, and so are the `NAME=text` pairs of a mapping; a list of mappings is written as
        in a file, on one line.
        """
        if name not in keys():
            raise Stop(_unknown_key(name, keys()))
        key = keys()[name]
        if key.items:
            plain = self.parse(text)
            return {key.name: [] if plain is None else plain}
        parts = [part.strip() for part in text.split(",") if part.strip()]
        bare = next((part for part in parts if "=" not in part), None)
        if key.kind is dict and bare is not None:
            raise Stop(f"{name} holds {bare!r}; write NAME=text, separated by commas")
        by_kind: dict[type, Any] = {tuple: parts, dict: dict(part.partition("=")[::2] for part in parts)}
        return {key.section: {key.field: by_kind.get(key.kind, text)}}

    def _check(self, tree: Any) -> None:
        if tree in (None, {}):
            return
        from pydantic_core import ValidationError  # nothing of pydantic is loaded for settings that say nothing

        try:
            config = _validator().validate_python(tree)
        except ValidationError as error:
            for details in error.errors(include_url=False):
                is_unknown = details["type"] == "unexpected_keyword_argument"
                path = (*details["loc"], _KEY) if is_unknown else details["loc"]
                self.note(_describe(details), self.place_of(path))
            return
        for key in keys().values():
            if key.section not in tree or (key.field and key.field not in tree[key.section]):
                continue
            section = getattr(config, key.section)
            place = self.place_of((*key.name.split("."), _KEY)) if self.has_lines else ()
            origin = Origin(self._layer, self.name, *place)
            self.values[key.name] = Entry(getattr(section, key.field) if key.field else section, origin)

    def place_of(self, path: Path) -> tuple[int, int]:
        """Line and column of what a path leads to, or of the nearest thing above it."""
        while path and path not in self._nodes:
            path = path[:-1]
        return place_of(self._nodes[path].start_mark if path in self._nodes else None)

    def _plain(self, node: yaml.Node, path: Path) -> Any:
        self._nodes[path] = node
        # An alias may stand for a whole tree, the one around it too.
        if len(path) > MAX_DEPTH or len(self._nodes) > _MAX_VALUES:
            raise Stop("it holds too many values", *place_of(node.start_mark))
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            mapping = {}
            for key, value in self.entries(node):
                self._nodes[(*path, key.value, _KEY)] = key
                mapping[key.value] = self._plain(value, (*path, key.value))
            return mapping
        if node.tag == "tag:yaml.org,2002:null":
            return None
        return node.value if node.tag == "tag:yaml.org,2002:str" else Unquoted(node.value)


@cache
def _validator() -> TypeAdapter[Config]:
    """What checks settings by the types of `Config`."""
    from pydantic import TypeAdapter

    return TypeAdapter(Config)


def _describe(details: ErrorDetails) -> str:
    """What is wrong, in words for the one who wrote it."""
    path, value = details["loc"], details["input"]
    name = ".".join([part for part in path if isinstance(part, str)][:2])
    key = _all_keys().get(name)
    if details["type"] == "unexpected_keyword_argument":
        return _unknown_key(name, _all_keys()) if len(path) > 1 else _unknown_section(name)
    if details["type"] == "missing":
        return f"{path[0]} has an entry without {path[-1]}"
    if details["type"] in ("value_error", "name"):
        return f"{name} {details['msg'].removeprefix('Value error, ')}"
    if key is None:
        return f"{name or 'the file'} must hold `key: value` lines"
    accepted = key.accepts if key.accepts.startswith(("one of", "true", "text")) else f"a {key.accepts}"
    is_part = path[-1] != (key.field or key.name)
    if value is None and not is_part:
        return f"{name} has no value; remove the line, or give it {accepted}"
    if isinstance(value, str) and (key.choices or key.kind not in (tuple, dict)):
        return f"{name} is {str(value)!r}; it must be {accepted}{did_you_mean(value, list(key.choices))}"
    return f"{name} must be {accepted}, {'and holds' if is_part else 'not'} {_SHOWN.get(type(value), 'text')}"


def _all_keys() -> dict[str, Key]:
    """Every key, and those of the mappings in lists."""
    return keys() | {item.name: item for key in keys().values() for item in key.items}


def _unknown_key(name: str, known: dict[str, Key]) -> str:
    return f"there is no key {name}{did_you_mean(name, list(known))}"


def _unknown_section(name: str) -> str:
    if name in keys():
        key = keys()[name]
        return f"write {key.section}: on a line of its own, and {key.field}: under it, indented"
    owner = next((key for key in keys().values() if key.field == name), None)
    if owner is not None:
        return f"{name} belongs under {owner.section}:"
    return f"there is no section {name}{did_you_mean(name, list(sections()))}"
