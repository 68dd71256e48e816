"""A role's file: YAML between two lines of `---`, and below them its prompt.

Every mistake is found at its line. A file without such lines replaces the prompt of the built-in role of its name, and
nothing else. One that `extends` a built-in role names only what differs from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from rookery.config.schema import BOOLEAN, TEXT, TEXTS, Key
from rookery.config.values import did_you_mean
from rookery.config.yaml_file import Mistake, Stop, YamlFile
from rookery.roles.messages import TYPES
from rookery.roles.model import NOTHING, PROFILES, SCOPE, Role
from rookery.roles.permissions import PERMISSIONS, PROGRAM, is_for_programs
from rookery.roles.tools import ALL, why_no_tool
from rookery.runtimes.registry import RUNTIMES

_FENCE = "---"
_DEFAULT = "default"
_NONE = "none"
"""The reach that takes a permission of the extended role away."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ENDINGS = tuple(each.name for each in TYPES.values() if not each.is_system)
_KEYS = {
    key.name: key
    for key in (
        Key("name", TEXT, ""),
        Key("extends", TEXT, ""),
        Key("aliases", TEXTS, ()),
        Key("purpose", TEXT, ""),
        Key("model", TEXT, _DEFAULT),
        Key("runtime", TEXT, _DEFAULT, choices=(_DEFAULT, *RUNTIMES)),
        Key("profile", TEXT, "", choices=PROFILES),
        Key("writes", TEXT, "", choices=(NOTHING, SCOPE)),
        Key("runs_checks", BOOLEAN, False),
        Key("slings", TEXTS, ()),
        Key("ends_with", TEXTS, (), choices=_ENDINGS),
    )
}
_APART = ("tools", "rights")
_REQUIRED = ("purpose", "profile", "writes", "rights")


def is_role_name(text: str) -> bool:
    """True if a role can be called that: it becomes part of files' and agents' names."""
    return _NAME.fullmatch(text) is not None


def read_role_file(path: str, name: str, builtin: Mapping[str, Role]) -> tuple[Role | None, tuple[Mistake, ...]]:
    """The role of that name in a file, or what is wrong with the file."""
    reader = _RoleFile(path, name, builtin)
    try:
        role = reader.read()
    except Stop:
        role = None
    return (None if reader.mistakes else role), tuple(reader.mistakes)


class _RoleFile(YamlFile):
    """Collects what one file says of a role."""

    def __init__(self, path: str, name: str, builtin: Mapping[str, Role]) -> None:
        super().__init__(path)
        self.name = name
        self.builtin = builtin

    def read(self) -> Role | None:
        text = self.read_text().replace("\r\n", "\n")
        lines = text.split("\n")
        self._check_name()
        if lines[0].rstrip() != _FENCE:
            return self._replace_prompt(text)
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
        if end is None:
            raise self.stop(f"its front matter has no end: write a line {_FENCE} below it")
        values = self._read_front("\n".join(lines[:end]))
        return self._build(values, "\n".join(lines[end + 1 :]).lstrip("\n"))

    def _check_name(self) -> None:
        owner = next((role.name for role in self.builtin.values() if self.name in role.aliases), None)
        if owner is not None:
            raise self.stop(f"{self.name} is another name of the role {owner}: call the file {owner}.md")
        if not is_role_name(self.name):
            raise self.stop(
                f"{self.name!r} is no name for a role: a small letter, then small letters, digits, - and _, 32 at most"
            )

    def _replace_prompt(self, text: str) -> Role:
        if self.name not in self.builtin:
            raise self.stop(
                f"it has no front matter, and there is no built-in role {self.name} to replace the prompt of"
            )
        return self.builtin[self.name].replace(prompt=text)

    def _read_front(self, text: str) -> dict[str, Any]:
        root = self.compose(text)
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
            raise self.stop(f"there is no built-in role {name} to extend; one of {known}", place.line, place.column)
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
