"""The files that `rook init` writes: the commented configuration, and what keeps them out of git."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from rookery.config.schema import BOOLEAN, DURATION, MAPPING, TEXTS, Key, sections
from rookery.config.values import show_duration

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
    given = values or {}
    parts = [_HEAD]
    for section in sections().values():
        parts.append(f"\n# {section.documentation}\n{section.name}:\n")
        parts += [_render_key(key, given) for key in section.keys]
    return "".join(parts)


def yaml_value(key: Key, value: Any) -> str:
    """A value as it is written in the file, on one line."""
    if value is None:
        return "null"
    if key.kind == BOOLEAN:
        return "true" if value else "false"
    if key.kind == DURATION:
        return show_duration(value)
    if key.kind == TEXTS:
        return "[" + ", ".join(_quoted(text) for text in value) + "]"
    if key.kind == MAPPING:
        return "{" + ", ".join(f"{_quoted(name)}: {_quoted(text)}" for name, text in value.items()) + "}"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _render_key(key: Key, given: Mapping[str, Any]) -> str:
    about = textwrap.wrap(key.documentation, _WIDTH)
    if key.choices:
        about.append("One of: " + ", ".join(key.choices) + ".")
    text = "".join(f"  # {line}\n" for line in about)
    if key.name in given:
        return f"{text}  {key.field}: {yaml_value(key, given[key.name])}\n"
    return f"{text}  # {key.field}: {yaml_value(key, key.default)}\n"


def _quoted(text: str) -> str:
    """The text as one YAML word, in quotes only where YAML would take it for something else."""
    style = '"' if not text or any(not char.isprintable() for char in text) or "," in text else None
    dumped: str = yaml.safe_dump(text, default_style=style, allow_unicode=True, width=float("inf"))
    return dumped.removesuffix("\n").removesuffix("\n...")
