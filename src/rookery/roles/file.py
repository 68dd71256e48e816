"""A role's file: YAML between two lines of `---`, and below them its prompt.

Every mistake is found at its line. A file without such lines replaces the prompt of the built-in role of its name, and
nothing else. One that `extends` a built-in role names only what differs from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import yaml_file
from rookery.config.values import did_you_mean
from rookery.config.yaml_file import Stop, place_of
from rookery.roles.messages import TYPES
from rookery.roles.model import NOTHING, PROFILES, SCOPE, Role
from rookery.roles.permissions import PERMISSIONS, PROGRAM, is_for_programs
from rookery.roles.tools import ALL, why_no_tool
from rookery.runtimes.registry import RUNTIMES

TEXT, TEXTS, BOOLEAN = "text", "texts", "boolean"
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_MAX_MESSAGE = 500
_FENCE = "---"
_DEFAULT = "default"
_NONE = "none"
"""The reach that takes a permission of the extended role away."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class _Key(Record):
    """A key of the front matter."""

    name: str
    kind: str = TEXT
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Written(Record):
    """A value that a file gives to a key, and where."""

    value: Any
    line: int
    column: int


_ENDINGS = tuple(each.name for each in TYPES.values() if not each.is_system)
_KEYS = {
    key.name: key
    for key in (
        _Key("name"),
        _Key("extends"),
        _Key("aliases", TEXTS),
        _Key("purpose"),
        _Key("model"),
        _Key("runtime", choices=(_DEFAULT, *RUNTIMES)),
        _Key("profile", choices=PROFILES),
        _Key("writes", choices=(NOTHING, SCOPE)),
        _Key("runs_checks", BOOLEAN),
        _Key("slings", TEXTS),
        _Key("ends_with", TEXTS, choices=_ENDINGS),
    )
}
_APART = ("tools", "rights")
_REQUIRED = ("purpose", "profile", "writes", "rights")


def is_role_name(text: str) -> bool:
    """True if a role can be called that: it becomes part of files' and agents' names."""
    return _NAME.fullmatch(text) is not None


def read_role_file(path: str, name: str, builtin: Mapping[str, Role]) -> tuple[Role | None, tuple[str, ...]]:
    """The role of that name in a file, or what is wrong with the file."""
    reader = _RoleFile(path, name, builtin)
    role = None
    try:
        role = reader.read()
    except Stop as stop:
        reader.add(stop.message, *stop.place)
    return (None if reader.mistakes else role), tuple(reader.mistakes)


class _RoleFile:
    """Collects what one file says of a role, and every mistake in it."""

    def __init__(self, path: str, name: str, builtin: Mapping[str, Role]) -> None:
        self.path = path
        self.values: dict[str, _Written] = {}
        self.mistakes: list[str] = []
        self.name = name
        self.builtin = builtin

    def read(self) -> Role | None:
        text = yaml_file.read_text(self.path).replace("\r\n", "\n")
        lines = text.split("\n")
        self._check_name()
        if lines[0].rstrip() != _FENCE:
            return self._replace_prompt(text)
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
        if end is None:
            raise Stop(f"its front matter has no end: write a line {_FENCE} below it")
        values = self._read_front("\n".join(lines[:end]))
        return self._build(values, "\n".join(lines[end + 1 :]).lstrip("\n"))

    def _check_name(self) -> None:
        owner = next((role.name for role in self.builtin.values() if self.name in role.aliases), None)
        if owner is not None:
            raise Stop(f"{self.name} is another name of the role {owner}: call the file {owner}.md")
        if not is_role_name(self.name):
            raise Stop(
                f"{self.name!r} is no name for a role: a small letter, then small letters, digits, - and _, 32 at most"
            )

    def _replace_prompt(self, text: str) -> Role:
        if self.name not in self.builtin:
            raise Stop(f"it has no front matter, and there is no built-in role {self.name} to replace the prompt of")
        return self.builtin[self.name].replace(prompt=text)

    def _read_front(self, text: str) -> dict[str, Any]:
        root = yaml_file.compose(text)
        apart: dict[str, Any] = {}
        for key, node in [] if root is None else self.entries(root, "the front matter"):
            if key.value == "tools":
                apart["tools"] = tuple(self._tools(node))
            elif key.value == "rights":
                apart["rights"] = dict(self._rights(node))
            elif key.value in _KEYS:
                self.read_value(_KEYS[key.value], key, node)
            else:
                self.note(key, f"a role has no {key.value}{did_you_mean(key.value, [*_KEYS, *_APART])}")
        return {name: written.value for name, written in self.values.items()} | apart

    def _tools(self, node: yaml.Node) -> Iterator[str]:
        """`all`, or a list of names."""
        if isinstance(node, yaml.ScalarNode) and node.value == ALL:
            yield ALL
        elif not isinstance(node, yaml.SequenceNode):
            self.note(node, f"tools must be `{ALL}` or a list of names")
        for each in node.value if isinstance(node, yaml.SequenceNode) else ():
            problem = why_no_tool(str(each.value))
            if problem:
                self.note(each, problem)
            yield str(each.value)

    def _rights(self, node: yaml.Node) -> Iterator[tuple[str, str]]:
        for key, value in self.entries(node, "rights"):
            reaches = PERMISSIONS.get(key.value)
            if reaches is None:
                self.note(key, f"there is no permission {key.value}{did_you_mean(key.value, list(PERMISSIONS))}")
            elif not reaches:
                self.note(key, f"{key.value} is for people alone: remove the line")
            elif value.value not in (*reaches, _NONE) or (is_for_programs(key.value) and value.value == _NONE):
                self.note(value, f"{key.value} cannot reach {value.value!r}; one of {', '.join(reaches)}")
            yield str(key.value), str(value.value)

    def _build(self, values: dict[str, Any], prompt: str) -> Role | None:
        base = self._base(values.pop("extends")) if "extends" in values else None
        if values.pop("name", self.name) != self.name:
            self._note_key("name", f"the file is called {self.name}.md: write name: {self.name}, or rename the file")
        for name in ("model", "runtime"):
            values[name] = "" if values.get(name) == _DEFAULT else values.get(name, getattr(base, name, ""))
        rights = {**(base.rights if base else {}), **values.get("rights", {})}
        rights |= {each: PROGRAM for each in PERMISSIONS if is_for_programs(each)}
        missing = [name for name in _REQUIRED if name not in values]
        if missing and base is None and not self.mistakes:
            self._note_key("", f"it lacks {', '.join(missing)}; `extends: ROLE` takes them from a built-in role")
        if not prompt.strip() and base is None:
            self._note_key("", "it has no prompt: write below the front matter how the role works")
        self._check_aliases(values.get("aliases", ()))
        if self.mistakes:
            return None
        values |= {"name": self.name, "rights": {key: reach for key, reach in rights.items() if reach != _NONE}}
        if base is None:
            role = Role(**values, prompt=prompt)
        else:
            values.setdefault("aliases", base.aliases if base.name == self.name else ())
            role = base.replace(**values, prompt=prompt if prompt.strip() else base.prompt)
        if not role.ends_with or "mail.write" not in role.rights:
            self._note_key("ends_with", "it could never finish: it needs ends_with, and mail.write in rights")
        return role

    def _base(self, name: str) -> Role:
        if name not in self.builtin:
            place, known = self.values["extends"], ", ".join(self.builtin)
            raise Stop(f"there is no built-in role {name} to extend; one of {known}", place.line, place.column)
        return self.builtin[name]

    def _check_aliases(self, aliases: tuple[str, ...]) -> None:
        for alias in aliases:
            owner = next((each for each in self.builtin.values() if alias in (each.name, *each.aliases)), None)
            if not is_role_name(alias):
                self._note_key("aliases", f"{alias!r} is no name for a role")
            elif owner is not None and owner.name != self.name:
                self._note_key("aliases", f"{alias} is a name of the role {owner.name}: choose another")

    def _note_key(self, name: str, message: str) -> None:
        """Something is wrong with a key, or with the front matter as a whole."""
        place = self.values.get(name)
        self.add(message, place.line if place else 1, place.column if place else 1)

    def read_value(self, key: _Key, field: yaml.ScalarNode, node: yaml.Node) -> None:
        """Keep what a node gives to a key, or note why it does not fit."""
        nodes = node.value if key.kind == TEXTS and isinstance(node, yaml.SequenceNode) else [node]
        for each in nodes:
            problem = _why_unfit(key, each)
            if problem:
                self.note(each, problem)
                return
        texts = tuple(str(each.value) for each in nodes)
        value: Any = texts if key.kind == TEXTS else _BOOLEANS[texts[0].lower()] if key.kind == BOOLEAN else texts[0]
        self.values[key.name] = _Written(value, *place_of(field.start_mark))

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
        self.add(message, *place_of(node.start_mark))

    def add(self, message: str, line: int, column: int) -> None:
        """Something is wrong at a place."""
        self.mistakes.append(f"{self.path}:{line}:{column}: {one_line(message, _MAX_MESSAGE)}")


def _why_unfit(key: _Key, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return f"{key.name} must hold " + ("a list of words" if key.kind == TEXTS else "one word")
    if key.kind == BOOLEAN and node.value.lower() not in _BOOLEANS:
        return f"{key.name} is {node.value!r}; write true or false"
    if key.choices and node.value not in key.choices:
        return (
            f"{key.name} is {node.value!r}; one of {', '.join(key.choices)}{did_you_mean(node.value, [*key.choices])}"
        )
    return ""
