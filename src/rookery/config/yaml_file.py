"""A YAML file as nodes: read, parsed, and every mistake in it noted at its line and column.

It is composed into nodes and never constructed into objects, because only nodes know where they stand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.reader import Reader

from rookery.base.text import one_line

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
_MAX_MESSAGE = 500


class Stop(Exception):
    """What is written cannot be read any further."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.place = (line, column)


class Mistakes:
    """Collects every mistake in one file, or in what else has that name, at its line and column."""

    def __init__(self, name: str, *, has_lines: bool = True) -> None:
        self.name = name
        self.has_lines = has_lines
        self.noted: list[tuple[int, int, str]] = []

    def note(self, message: str, place: tuple[int, int] = (1, 1)) -> None:
        """Something is wrong at a line and column."""
        self.noted.append((*place, message))

    def note_node(self, node: yaml.Node, message: str) -> None:
        """Something is wrong with a node."""
        self.note(message, place_of(node.start_mark))

    @property
    def mistakes(self) -> list[str]:
        """Every mistake on one line, after its place: `path:line:column`, or the name alone."""
        return [
            f"{self.name}{f':{line}:{column}' if self.has_lines else ''}: {one_line(message, _MAX_MESSAGE)}"
            for line, column, message in self.noted
        ]

    def entries(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries of a mapping whose keys are words that stand there once; every other one is a mistake."""
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.note_node(key, "a key must be a word")
            elif key.value in lines:
                self.note_node(key, f"{key.value} is given twice; the first is on line {lines[key.value]}")
            else:
                lines[key.value] = key.start_mark.line + 1
                yield key, value


def read_text(path: str) -> str:
    """What a file holds; raises Stop if that is no text."""
    return _decode(_load(path))


def _load(path: str) -> bytes:
    if os.path.exists(path) and not os.path.isfile(path):
        raise Stop("it is not a file")  # opening a pipe would wait for ever
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise Stop(f"it cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise Stop(f"it is larger than {_MAX_BYTES // 1024} KiB")
    return data


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        raise Stop("it is not UTF-8 from here on", *_position(before)) from error
    unprintable = Reader.NON_PRINTABLE.search(text)
    if unprintable:
        character = f"U+{ord(unprintable.group()):04X}"
        raise Stop(f"the character {character} may not stand here", *_position(text[: unprintable.start()]))
    return text


def _position(before: str) -> tuple[int, int]:
    """Line and column of what follows the text, from 1."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def compose(text: str) -> yaml.Node | None:
    """The nodes of a YAML text; raises Stop if it is none."""
    try:
        _check_depth(text)
        node: yaml.Node | None = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise Stop(f"it is not YAML: {problem}", *place_of(error.problem_mark or error.context_mark)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Without libyaml, an escape such as "\UFFFFFFFF" ends in a bare ValueError.
        raise Stop(f"it is not YAML: {' '.join(str(error).split())}") from error
    return node


def _check_depth(text: str) -> None:
    """Refuse deep nesting before composing: libyaml's composer recurses in C and ends the process."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise Stop("it is nested too deeply", *place_of(event.start_mark))


def place_of(mark: Any) -> tuple[int, int]:
    """Line and column of a mark, from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
