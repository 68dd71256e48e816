"""The files that `rook init` writes: the commented configuration, and what keeps them out of git."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from rookery.config.schema import BOOLEAN, DURATION, ITEMS, MAPPING, TEXTS, Key, Section, sections
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
        if section.is_list:
            parts.append(_render_list(section, given))
            continue
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
    if key.kind == ITEMS:
        return "[" + ", ".join(_item(key, each) for each in value) + "]"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _item(key: Key, value: Any) -> str:
    """One mapping of a list, without what is as it is by default."""
    given = {each: getattr(value, each.field) for each in key.items}
    words = (f"{each.field}: {yaml_value(each, part)}" for each, part in given.items() if part != each.default)
    return "{" + ", ".join(words) + "}"


def _render_list(section: Section, given: Mapping[str, Any]) -> str:
    key = section.keys[0]
    about = textwrap.wrap(f"{section.documentation} {key.documentation}", _WIDTH)
    about += [f"  {each.field}: {line}" for each in key.items for line in textwrap.wrap(each.documentation, _WIDTH)]
    text = "\n" + "".join(f"# {line}\n" for line in about)
    if key.name not in given:
        return f"{text}# {key.name}: {yaml_value(key, key.default)}\n"
    entries = "".join(f"  - {_item(key, each)}\n" for each in given[key.name])
    return f"{text}{key.name}:\n{entries}" if entries else f"{text}{key.name}: []\n"


def _render_key(key: Key, given: Mapping[str, Any]) -> str:
    about = textwrap.wrap(key.documentation, _WIDTH)
    if key.choices:
        about += textwrap.wrap("One of: " + ", ".join(key.choices) + ".", _WIDTH)
    text = "".join(f"  # {line}\n" for line in about)
    if key.name in given:
        return f"{text}  {key.field}: {yaml_value(key, given[key.name])}\n"
    return f"{text}  # {key.field}: {yaml_value(key, key.default)}\n"


def _quoted(text: str) -> str:
    """The text as one YAML word, in quotes only where YAML would take it for something else."""
    style = '"' if not text or any(not char.isprintable() or char in ",[]{}" for char in text) else None
    dumped: str = yaml.safe_dump(text, default_style=style, allow_unicode=True, width=float("inf"))
    return dumped.removesuffix("\n").removesuffix("\n...")
