"""The reference page of the configuration, as Markdown."""

from __future__ import annotations

from rookery.config.schema import Key, Section, sections
from rookery.config.template import yaml_value

_HEAD = """\
# Configuration

Settings are read in this order, and a later one wins:

1. the defaults below
2. your own file, `~/.config/rookery/config.yaml` (or under `$XDG_CONFIG_HOME`)
3. the project's, `.rookery/config.yaml`
4. this checkout's, `.rookery/config.local.yaml`
5. the environment: `ROOKERY_TASKS_LEASE=1h`; an empty variable counts as not set
6. flags: `rook -c tasks.lease=1h …`

`rook config show` lists what is in force, `rook config explain KEY` says where a value comes from, and
`rook doctor` checks every file. A duration is a number of seconds or `90s`, `30m`, `2h`, `1d`. In a variable or a
flag, a list is separated by commas, and so are the `NAME=text` pairs of a mapping.
"""


def render_reference() -> str:
    """Every section and key, with type, default, variable and documentation."""
    return _HEAD + "".join(_render_section(section) for section in sections().values())


def _render_section(section: Section) -> str:
    return f"\n## {section.name}\n\n{section.documentation}\n" + "".join(_render_key(key) for key in section.keys)


def _render_key(key: Key) -> str:
    entries = "".join(f"  - `{item.field}`: {item.documentation}\n" for item in key.items)
    return (
        f"\n### `{key.name}`\n\n{key.documentation}\n\n"
        f"- Accepts: {key.accepts}\n"
        f"- Default: `{yaml_value(key.default)}`\n"
        f"- Variable: `{key.variable}`\n" + (f"- Each entry:\n{entries}" if entries else "")
    )
