"""From what is written to a value: a YAML node, or text from the environment or a flag.

Numbers and durations are read from their text, not by YAML's own rules: to YAML `1:30` is the number 90.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Any

import yaml

from rookery.base.clock import parse_duration
from rookery.base.errors import InvalidInput, RookError
from rookery.base.text import check_text
from rookery.config.schema import BOOLEAN, DURATION, INTEGER, ITEMS, MAPPING, NUMBER, TEXT, TEXTS, Key

_TAG = "tag:yaml.org,2002:"
_TRUE = {"true", "yes", "on"}
_FALSE = {"false", "no", "off"}
_SHOWN = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "timestamp": "a date",
    "seq": "a list",
    "map": "a mapping",
}
_FITTING = {
    TEXT: {"str"},
    BOOLEAN: {"bool"},
    INTEGER: {"int"},
    NUMBER: {"int", "float"},
    DURATION: {"int", "float", "str"},
}
_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


class BadValue(Exception):
    """The value does not fit the key; `node` is the part of it that does not."""

    def __init__(self, message: str, node: yaml.Node | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


def from_node(key: Key, node: yaml.Node) -> Any:
    """The value that a node of a YAML file gives to a key; raises BadValue."""
    kind = kind_of(node)
    if key.kind == ITEMS:
        return _items_from_node(key, node)
    if kind == "null":
        if key.optional:
            return None
        raise BadValue(f"{key.name} has no value; remove the line, or give it {_a(key)}", node)
    if key.kind == TEXTS:
        return _texts_from_node(key, node)
    if key.kind == MAPPING:
        return _mapping_from_node(key, node)
    if kind == "bool" and node.value in key.choices:
        return node.value  # YAML takes `on` and `off` for truth, and people write them as words
    if kind not in _FITTING[key.kind] or not isinstance(node, yaml.ScalarNode):
        raise BadValue(f"{key.name} must be {_a(key)}, not {_SHOWN.get(kind, kind)}{_quoting(key, node)}", node)
    return _from_scalar(key, node.value)


def from_text(key: Key, text: str) -> Any:
    """The value that a variable or a flag gives to a key; raises BadValue.

    A list is separated by commas, and so are the `NAME=text` pairs of a mapping; a list of mappings is written as in
    a file, on one line.
    """
    if key.kind == ITEMS:
        return _items_from_text(key, text)
    if not text and key.optional:
        return None
    if key.kind == MAPPING:
        return _mapping_from_text(key, text)
    if key.kind != TEXTS:
        return _from_scalar(key, text)
    return tuple(_check_text(key, part.strip()) for part in text.split(",") if part.strip())


def kind_of(node: yaml.Node) -> str:
    """The last part of a node's tag: `str`, `int`, `map` …"""
    return str(node.tag).removeprefix(_TAG)


def show_duration(seconds: float) -> str:
    """Seconds as people write them, so that `parse_duration` gives the same number back."""
    for unit, size in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds!r}s"


def show_value(key: Key, value: Any) -> str:
    """A value as people write it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if key.kind == DURATION:
        return show_duration(value)
    if key.kind == MAPPING:
        return ", ".join(f"{name}={text}" for name, text in value.items())
    if key.kind == ITEMS:
        return ", ".join(str(getattr(each, key.items[0].field)) for each in value)
    return ", ".join(value) if key.kind == TEXTS else str(value)


def plain_value(key: Key, value: Any) -> Any:
    """A value as programs get it."""
    if key.kind != ITEMS:
        return value
    return [{each.field: getattr(item, each.field) for each in key.items} for item in value]


def did_you_mean(word: str, known: list[str]) -> str:
    """A suggestion in brackets to append to a message, or nothing."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def _texts_from_node(key: Key, node: yaml.Node) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise BadValue(f"{key.name} must be a list, not {_SHOWN.get(kind_of(node), kind_of(node))}", node)
    texts = []
    for item in node.value:
        if kind_of(item) != "str" or not isinstance(item, yaml.ScalarNode):
            shown = _SHOWN.get(kind_of(item), kind_of(item))
            raise BadValue(f"{key.name} must hold texts only, not {shown}{_quoting(key, item)}", item)
        texts.append(_check_text(key, item.value))
    return tuple(texts)


def _items_from_node(key: Key, node: yaml.Node) -> tuple[Any, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise BadValue(f"{key.name} must be a list, not {_SHOWN.get(kind_of(node), kind_of(node))}", node)
    made: list[Any] = []
    called = key.items[0].field
    for item in node.value:
        made.append(_item_from_node(key, item))
        name = getattr(made[-1], called)
        if not name.strip():
            raise BadValue(f"{key.name} has an entry without a {called}", item)
        if any(getattr(each, called) == name for each in made[:-1]):
            raise BadValue(f"{key.name} has two that are called {name}", item)
    return tuple(made)


def _item_from_node(key: Key, node: yaml.Node) -> Any:
    """One mapping of a list; a mistake is told at the word that is wrong."""
    if not isinstance(node, yaml.MappingNode):
        shown = _SHOWN.get(kind_of(node), kind_of(node))
        raise BadValue(f"{key.name} must hold mappings with {', '.join(_fields(key))}, not {shown}", node)
    known = {each.field: each for each in key.items}
    found: dict[str, Any] = {}
    for name, value in node.value:
        if not isinstance(name, yaml.ScalarNode) or name.value not in known:
            word = name.value if isinstance(name, yaml.ScalarNode) else "something that is no word"
            raise BadValue(f"{key.name} holds {word}{did_you_mean(str(word), list(known))}", name)
        if name.value in found:
            raise BadValue(f"{key.name} gives {name.value} twice", name)
        try:
            found[name.value] = from_node(known[name.value], value)
        except BadValue as error:
            raise BadValue(error.message, error.node or value) from error
    missing = [each.field for each in key.items if each.required and each.field not in found]
    if missing:
        raise BadValue(f"{key.name} has an entry without {' and '.join(missing)}", node)
    return key.build(**found)


def _items_from_text(key: Key, text: str) -> tuple[Any, ...]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise BadValue(f"{key.name} is no YAML: {' '.join(str(error).split())}") from error
    return () if node is None else _items_from_node(key, node)


def _fields(key: Key) -> list[str]:
    return [each.field for each in key.items]


def _mapping_from_node(key: Key, node: yaml.Node) -> dict[str, str]:
    if not isinstance(node, yaml.MappingNode):
        raise BadValue(f"{key.name} must be a mapping, not {_SHOWN.get(kind_of(node), kind_of(node))}", node)
    found: dict[str, str] = {}
    for name, value in node.value:
        for item in (name, value):
            if kind_of(item) != "str" or not isinstance(item, yaml.ScalarNode):
                shown = _SHOWN.get(kind_of(item), kind_of(item))
                raise BadValue(f"{key.name} must hold names and texts only, not {shown}{_quoting(key, item)}", item)
        if name.value in found:
            raise BadValue(f"{key.name} gives {name.value} twice", name)
        found[_check_variable(key, name.value)] = _check_text(key, value.value)
    return found


def _mapping_from_text(key: Key, text: str) -> dict[str, str]:
    found = {}
    for part in text.split(","):
        name, mark, value = part.strip().partition("=")
        if name and not mark:
            raise BadValue(f"{key.name} holds {part.strip()!r}; write NAME=text, separated by commas")
        if name:
            found[_check_variable(key, name)] = _check_text(key, value)
    return found


def _check_variable(key: Key, name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise BadValue(f"{key.name} holds {name!r}, which is no name of a variable")
    return name


def _from_scalar(key: Key, text: str) -> Any:
    if key.kind == TEXT:
        return _check_text(key, text)
    if key.kind == BOOLEAN:
        return _boolean(key, text)
    try:
        number = parse_duration(text) if key.kind == DURATION else _number(key, text)
    except InvalidInput as error:
        raise BadValue(f"{key.name} is {text!r}, which is no duration; {error.hint}") from error
    _check_limits(key, number, text)
    return number


def _boolean(key: Key, text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise BadValue(f"{key.name} is {text!r}; it must be true or false")
    return word in _TRUE


def _number(key: Key, text: str) -> float:
    try:
        number = int(text) if key.kind == INTEGER else float(text)
    except ValueError as error:
        raise BadValue(f"{key.name} is {text!r}; it must be {_a(key)}") from error
    if isinstance(number, float) and not math.isfinite(number):
        raise BadValue(f"{key.name} is {text!r}; it must be {_a(key)}")
    return number


def _check_limits(key: Key, number: float, text: str) -> None:
    low = -math.inf if key.minimum is None else key.minimum
    high = math.inf if key.maximum is None else key.maximum
    if not low <= number <= high:
        raise BadValue(f"{key.name} is {text}; it must be {_a(key)}")


def _check_text(key: Key, text: str) -> str:
    try:
        check_text(key.name, text)
    except RookError as error:
        raise BadValue(error.message) from error
    if key.choices and text not in key.choices:
        suggestion = did_you_mean(text, list(key.choices))
        raise BadValue(f"{key.name} is {text!r}; it must be one of {', '.join(key.choices)}{suggestion}")
    return text


def _a(key: Key) -> str:
    """What the key accepts, as it stands in a sentence."""
    words = key.accepts
    return words if words.startswith(("one of", "true", "text")) else f"a {words}"


def _quoting(key: Key, node: yaml.Node) -> str:
    """YAML takes `1.0`, `no` and `2026-01-31` for something else than text; quotes help."""
    if key.kind not in (TEXT, TEXTS, MAPPING) or not isinstance(node, yaml.ScalarNode) or kind_of(node) not in _SHOWN:
        return ""
    return f'; put it in quotes: "{node.value}"'
