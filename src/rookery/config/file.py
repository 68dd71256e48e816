"""One configuration file: what it gives to which key, and every mistake in it at its line and column."""

from __future__ import annotations

import os
from dataclasses import dataclass

import yaml

from rookery.base.record import Record
from rookery.config.schema import keys, sections
from rookery.config.values import did_you_mean
from rookery.config.yaml_file import Mistake, Stop, Written, YamlFile


@dataclass(frozen=True, slots=True)
class Read(Record):
    """What a file says, and what is wrong with it."""

    values: dict[str, Written]
    mistakes: tuple[Mistake, ...]


def read_file(path: str) -> Read:
    """Read a configuration file. One that is not there, or holds comments only, says nothing."""
    if not os.path.lexists(path):
        return Read({}, ())
    reader = _FileReader(path)
    reader.read()
    return Read(reader.values, tuple(reader.mistakes))


class _FileReader(YamlFile):
    """Collects the values and the mistakes of one file."""

    def read(self) -> None:
        try:
            root = self.compose(self.read_text())
        except Stop:
            return
        if root is None or _is_empty(root):
            return
        for name, section_node in self.entries(root, "the file"):
            self._read_section(name, section_node)

    def _read_section(self, name: yaml.ScalarNode, node: yaml.Node) -> None:
        section = sections().get(name.value)
        if section is None:
            self.note(name, _unknown_section(name.value))
            return
        if _is_empty(node):
            return
        if section.is_list:
            self.read_value(section.keys[0], name, node)
            return
        known = {key.field: key for key in section.keys}
        for field, value in self.entries(node, section.name):
            key = known.get(field.value)
            if key is None:
                self.note(field, unknown_key(f"{section.name}.{field.value}"))
            else:
                self.read_value(key, field, value)


def unknown_key(name: str) -> str:
    """What to say of a key that does not exist."""
    return f"there is no key {name}{did_you_mean(name, list(keys()))}"


def _unknown_section(name: str) -> str:
    if name in keys():
        key = keys()[name]
        return f"write {key.section}: on a line of its own, and {key.field}: beneath it, indented"
    owner = next((key for key in keys().values() if key.field == name), None)
    if owner is not None:
        return f"{name} belongs beneath {owner.section}:"
    return f"there is no section {name}{did_you_mean(name, list(sections()))}"


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
