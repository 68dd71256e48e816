"""A role's file: YAML between two lines of `---`, and below them its prompt.

Every mistake is reported with its line. A file without such lines replaces the prompt of the built-in role of its
name, and nothing else. One that `extends` a built-in role names only what differs from it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from rookery.config import yaml_file
from rookery.config.values import did_you_mean
from rookery.config.yaml_file import Mistakes, Stop, place_of
from rookery.roles.messages import TYPES
from rookery.roles.model import NOTHING, PROFILES, SCOPE, Role, RoleInvalid
from rookery.roles.permissions import PERMISSIONS, PROGRAM, is_for_programs
from rookery.roles.tools import ALL, why_no_tool
from rookery.runtimes.registry import RUNTIMES

TEXT, TEXTS, BOOLEAN = "text", "texts", "boolean"
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_FENCE = "---"
_DEFAULT = "default"
_NONE = "none"
"""The reach that removes a permission of the extended role."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_ENDINGS = tuple(name for name, kind in TYPES.items() if not kind.is_system)
_KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "name": (TEXT, ()),
    "extends": (TEXT, ()),
    "aliases": (TEXTS, ()),
    "purpose": (TEXT, ()),
    "model": (TEXT, ()),
    "runtime": (TEXT, (_DEFAULT, *RUNTIMES)),
    "profile": (TEXT, PROFILES),
    "writes": (TEXT, (NOTHING, SCOPE)),
    "runs_checks": (BOOLEAN, (*_BOOLEANS,)),
    "slings": (TEXTS, ()),
    "ends_with": (TEXTS, _ENDINGS),
}
"""The keys of the front matter but for `tools` and `rights`: what each holds, and what can be chosen."""
_REQUIRED = ("purpose", "profile", "writes", "rights")


def is_role_name(text: str) -> bool:
    """True if a role can be called that: it becomes part of files' and agents' names."""
    return _NAME.fullmatch(text) is not None


def read_role_file(path: str, name: str, builtin: Mapping[str, Role]) -> Role:
    """The role of that name in a file; raises RoleInvalid with everything that is wrong with the file."""
    file = _RoleFile(path, name, builtin)
    role = None
    try:
        role = file.read()
    except Stop as stop:
        file.note(stop.message, stop.place)
    if role is None or file.noted:
        raise RoleInvalid("\n".join(file.mistakes), hint="" if builtin else "install Rookery again")
    return role


class _RoleFile(Mistakes):
    """Collects what one file says of a role, and every mistake in it."""

    def __init__(self, path: str, name: str, builtin: Mapping[str, Role]) -> None:
        super().__init__(path)
        self.role = name
        self.builtin = builtin
        self.values: dict[str, Any] = {}
        self.places: dict[str, tuple[int, int]] = defaultdict(lambda: (1, 1))
        """Line and column of each key."""

    def read(self) -> Role | None:
        text = yaml_file.read_text(self.name).replace("\r\n", "\n")
        lines = text.split("\n")
        self._check_name()
        if lines[0].rstrip() != _FENCE:
            if self.role not in self.builtin:
                raise Stop(
                    f"it has no front matter, and there is no built-in role {self.role} whose prompt it could replace"
                )
            return self.builtin[self.role].replace(prompt=text)
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
        if end is None:
            raise Stop(f"its front matter has no end: write a line {_FENCE} below it")
        self._read_front("\n".join(lines[:end]))
        return self._build(self.values, "\n".join(lines[end + 1 :]).lstrip("\n"))

    def _check_name(self) -> None:
        owner = next((role.name for role in self.builtin.values() if self.role in role.aliases), None)
        if owner is not None:
            raise Stop(f"{self.role} is another name of the role {owner}: call the file {owner}.md")
        if not is_role_name(self.role):
            rule = "a small letter, then small letters, digits, - and _, 32 at most"
            raise Stop(f"{self.role!r} is not a valid name for a role: {rule}")

    def _read_front(self, text: str) -> None:
        root = yaml_file.compose(text)
        for key, node in [] if root is None else self._mapping(root, "the front matter"):
            self.places[key.value] = place_of(key.start_mark)
            if key.value == "tools":
                self.values["tools"] = tuple(self._tools(node))
            elif key.value == "rights":
                self.values["rights"] = dict(self._rights(node))
            elif key.value in _KEYS:
                self._read_value(key.value, node)
            else:
                known = [*_KEYS, "tools", "rights"]
                self.note_node(key, f"a role has no {key.value}{did_you_mean(key.value, known)}")

    def _read_value(self, name: str, node: yaml.Node) -> None:
        """Keep what a node gives to a key, or note why it does not fit."""
        kind, choices = _KEYS[name]
        texts = []
        for part in node.value if kind == TEXTS and isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(part, yaml.ScalarNode):
                self.note_node(part, f"{name} must hold " + ("a list of words" if kind == TEXTS else "one word"))
                return
            texts.append(part.value.lower() if kind == BOOLEAN else part.value)
            if choices and texts[-1] not in choices:
                suggestion = did_you_mean(part.value, [*choices])
                self.note_node(part, f"{name} is {part.value!r}; one of {', '.join(choices)}{suggestion}")
                return
        self.values[name] = tuple(texts) if kind == TEXTS else _BOOLEANS[texts[0]] if kind == BOOLEAN else texts[0]

    def _tools(self, node: yaml.Node) -> Iterator[str]:
        """`all`, or a list of names."""
        if isinstance(node, yaml.ScalarNode) and node.value == ALL:
            yield ALL
        elif not isinstance(node, yaml.SequenceNode):
            self.note_node(node, f"tools must be `{ALL}` or a list of names")
        for part in node.value if isinstance(node, yaml.SequenceNode) else ():
            problem = why_no_tool(str(part.value))
            if problem:
                self.note_node(part, problem)
            yield str(part.value)

    def _rights(self, node: yaml.Node) -> Iterator[tuple[str, str]]:
        for key, value in self._mapping(node, "rights"):
            name, reach = key.value, value.value
            reaches = PERMISSIONS.get(name)
            if reaches is None:
                self.note_node(key, f"there is no permission {name}{did_you_mean(name, list(PERMISSIONS))}")
            elif not reaches:
                self.note_node(key, f"{name} is for people alone: remove the line")
            elif reach not in (*reaches, _NONE) or (is_for_programs(name) and reach == _NONE):
                self.note_node(value, f"{name} cannot reach {reach!r}; one of {', '.join(reaches)}")
            yield name, str(reach)

    def _build(self, values: dict[str, Any], prompt: str) -> Role | None:
        base = self._base(values.pop("extends")) if "extends" in values else None
        if values.pop("name", self.role) != self.role:
            self._note_key("name", f"the file is called {self.role}.md: write name: {self.role}, or rename the file")
        for key in ("model", "runtime"):
            values[key] = "" if values.get(key) == _DEFAULT else values.get(key, getattr(base, key, ""))
        missing = [key for key in _REQUIRED if key not in values]
        if missing and base is None and not self.noted:
            self.note(f"it lacks {', '.join(missing)}; `extends: ROLE` takes them from a built-in role")
        if not prompt.strip() and base is None:
            self.note("it has no prompt: write below the front matter how the role works")
        self._check_aliases(values.get("aliases", ()))
        if self.noted:
            return None
        rights = {**(base.rights if base else {}), **values.get("rights", {})}
        rights |= {permission: PROGRAM for permission in PERMISSIONS if is_for_programs(permission)}
        values |= {"name": self.role, "rights": {key: reach for key, reach in rights.items() if reach != _NONE}}
        if base is None:
            role = Role(**values, prompt=prompt)
        else:
            values.setdefault("aliases", base.aliases if base.name == self.role else ())
            role = base.replace(**values, prompt=prompt if prompt.strip() else base.prompt)
        if not role.ends_with or "mail.write" not in role.rights:
            self._note_key("ends_with", "it could never finish: it needs ends_with, and mail.write in rights")
        return role

    def _base(self, name: str) -> Role:
        if name not in self.builtin:
            known = ", ".join(self.builtin)
            raise Stop(f"there is no built-in role {name} to extend; one of {known}", *self.places["extends"])
        return self.builtin[name]

    def _check_aliases(self, aliases: tuple[str, ...]) -> None:
        for alias in aliases:
            owner = next((role for role in self.builtin.values() if alias in (role.name, *role.aliases)), None)
            if not is_role_name(alias):
                self._note_key("aliases", f"{alias!r} is not a valid name for a role")
            elif owner is not None and owner.name != self.role:
                self._note_key("aliases", f"{alias} is a name of the role {owner.name}: choose another")

    def _mapping(self, node: yaml.Node, what: str) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        if isinstance(node, yaml.MappingNode):
            yield from self.entries(node)
        else:
            self.note_node(node, f"{what} must hold `key: value` lines")

    def _note_key(self, key: str, message: str) -> None:
        self.note(message, self.places[key])
