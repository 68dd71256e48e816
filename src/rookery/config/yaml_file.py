"""A YAML file as nodes: read, parsed, and every mistake in it noted at its line and column.

It is composed into nodes and never constructed into objects, because only nodes know where they stand.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.reader import Reader

from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config.schema import Key
from rookery.config.values import BadValue, from_node

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_BYTES = 256 * 1024
_MAX_DEPTH = 16
_MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Mistake(Record):
    """Something that may not stand where it stands."""

    where: str
    """`path:line:column`, a variable or a flag."""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {one_line(self.message, _MAX_MESSAGE)}"


@dataclass(frozen=True, slots=True)
class Written(Record):
    """A value that a file gives to a key, and where."""

    value: Any
    line: int
    column: int


class Stop(Exception):
    """The file cannot be read any further; the mistake is noted."""


class YamlFile:
    """One file: the values and the mistakes that were found so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[str, Written] = {}
        self.mistakes: list[Mistake] = []

    def read_text(self) -> str:
        """What the file holds; raises Stop if that is no text."""
        return self._decode(self._load())

    def _load(self) -> bytes:
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise self.stop("it is not a file")  # opening a pipe would wait for ever
        try:
            with open(self.path, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            raise self.stop(f"it cannot be read: {error.strerror}") from error
        if len(data) > _MAX_BYTES:
            raise self.stop(f"it is larger than {_MAX_BYTES // 1024} KiB")
        return data

    def _decode(self, data: bytes) -> str:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8", "replace")
            raise self.stop("it is not UTF-8 from here on", *_position(before)) from error
        unprintable = Reader.NON_PRINTABLE.search(text)
        if unprintable:
            character = f"U+{ord(unprintable.group()):04X}"
            raise self.stop(f"the character {character} may not stand here", *_position(text[: unprintable.start()]))
        return text

    def compose(self, text: str) -> yaml.Node | None:
        """The nodes of a YAML text; raises Stop if it is none."""
        try:
            self._check_depth(text)
            node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            said = ", ".join(part for part in (error.context, error.problem) if part)
            raise self.stop(f"it is not YAML: {said}", *place) from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # Without libyaml, an escape such as "\UFFFFFFFF" ends in a bare ValueError.
            raise self.stop(f"it is not YAML: {' '.join(str(error).split())}") from error
        return node

    def _check_depth(self, text: str) -> None:
        """Refuse deep nesting before composing: libyaml's composer recurses in C and ends the process."""
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _MAX_DEPTH:
                mark = event.start_mark
                place = (mark.line + 1, mark.column + 1) if mark is not None else ()
                raise self.stop("it is nested too deeply", *place)

    def read_value(self, key: Key, field: yaml.ScalarNode, node: yaml.Node) -> None:
        """Keep what a node gives to a key, or note why it does not fit."""
        try:
            value = from_node(key, node)
        except BadValue as error:
            self.note(error.node or node, error.message)
        else:
            self.values[key.name] = Written(value, field.start_mark.line + 1, field.start_mark.column + 1)

    def entries(self, node: yaml.Node, what: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries of a mapping whose keys are text; every other one is a mistake."""
        if not isinstance(node, yaml.MappingNode):
            self.note(node, f"{what} must hold `key: value` lines")
            return []
        seen: dict[str, int] = {}
        entries = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.note(key, "a key must be a word")
            elif key.value in seen:
                self.note(key, f"{key.value} is given twice; the first is on line {seen[key.value]}")
            else:
                seen[key.value] = key.start_mark.line + 1
                entries.append((key, value))
        return entries

    def note(self, node: yaml.Node, message: str) -> None:
        """Something is wrong at a node."""
        self.add(message, node.start_mark.line + 1, node.start_mark.column + 1)

    def add(self, message: str, line: int, column: int) -> None:
        self.mistakes.append(Mistake(f"{self.path}:{line}:{column}", message))

    def stop(self, message: str, line: int = 1, column: int = 1) -> Stop:
        self.add(message, line, column)
        return Stop()


def _position(before: str) -> tuple[int, int]:
    """Line and column of what follows the text, from 1."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
