"""The files that `rook init` writes: the commented configuration, and what keeps them out of git."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import yaml

from rookery.config.schema import Key, Section, sections
from rookery.config.values import show_value

GITIGNORE = """\
# Rookery's state stays out of version control, this file included.
# To share the configuration or your own role prompts, add them by force, once:
#     git add -f .rookery/config.yaml .rookery/roles
*
"""

_HEAD = """\
# Rookery's configuration for this repository. What is commented out shows the default.
#
# `rook config show` lists what is in force; `rook config explain KEY` says where a value comes from.
# Your own settings for every repository belong in ~/.config/rookery/config.yaml,
# those for this checkout alone in config.local.yaml beside this file.
"""

_WIDTH = 100


def render_template(values: Mapping[str, Any] | None = None) -> str:
    """The configuration file with every key commented out but those that have a value here."""
    values = values or {}
    parts = [_HEAD]
    for section in sections().values():
        if section.is_list:
            parts.append(_render_list(section, values))
            continue
        parts.append(f"\n# {section.documentation}\n{section.name}:\n")
        parts += [_render_key(key, values) for key in section.keys]
    return "".join(parts)


def yaml_value(value: Any) -> str:
    """A value as it is written in the file, on one line; a number with a fraction is a duration."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(yaml_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(name)}: {yaml_value(inner)}" for name, inner in value.items()) + "}"
    if is_dataclass(value):  # one mapping of a list, without what is as it is by default
        parts = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
        return yaml_value({name: part for name, (part, default) in parts.items() if part != default})
    return show_value(value)


def _render_list(section: Section, values: Mapping[str, Any]) -> str:
    key = section.keys[0]
    about = textwrap.wrap(f"{section.documentation} {key.documentation}", _WIDTH)
    about += [f"  {item.field}: {line}" for item in key.items for line in textwrap.wrap(item.documentation, _WIDTH)]
    text = "\n" + "".join(f"# {line}\n" for line in about)
    if key.name not in values:
        return f"{text}# {key.name}: {yaml_value(key.default)}\n"
    entries = "".join(f"  - {yaml_value(entry)}\n" for entry in values[key.name])
    return f"{text}{key.name}:\n{entries}" if entries else f"{text}{key.name}: []\n"


def _render_key(key: Key, values: Mapping[str, Any]) -> str:
    about = textwrap.wrap(key.documentation, _WIDTH)
    if key.choices:
        about += textwrap.wrap("One of: " + ", ".join(key.choices) + ".", _WIDTH)
    text = "".join(f"  # {line}\n" for line in about)
    if key.name in values:
        return f"{text}  {key.field}: {yaml_value(values[key.name])}\n"
    return f"{text}  # {key.field}: {yaml_value(key.default)}\n"


def _quoted(text: str) -> str:
    """The text as one YAML word, in quotes only where YAML would take it for something else."""
    style = '"' if not text or any(not char.isprintable() or char in ",[]{}" for char in text) else None
    dumped: str = yaml.safe_dump(text, default_style=style, allow_unicode=True, width=float("inf"))
    return dumped.removesuffix("\n").removesuffix("\n...")
