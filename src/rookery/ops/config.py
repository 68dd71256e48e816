"""The operations on the configuration: what is in force, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from rookery.base.errors import NotFound
from rookery.base.record import Record
from rookery.config.loader import load_config
from rookery.config.schema import Key, keys
from rookery.config.sources import Entry, Origin
from rookery.config.values import did_you_mean, plain_value, show_value
from rookery.ops.context import Context
from rookery.ops.operation import SETTINGS, Doc, Ref, op


@dataclass(frozen=True, slots=True)
class Setting(Record):
    """One key with the value in force. Durations are seconds; `shown` is for people."""

    PRINTS = "key"
    key: str
    value: Any
    shown: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class LayerValue(Record):
    """What one layer says of a key."""

    layer: str
    value: Any
    shown: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Explained(Record):
    """All there is to know of one key; `layers` has the lowest first, and the last one is in force."""

    key: str
    value: Any
    shown: str
    default: Any
    default_shown: str
    accepts: str
    choices: tuple[str, ...]
    variable: str
    documentation: str
    origin: Origin
    layers: tuple[LayerValue, ...]


@op("config show", needs="config.read", view="environment.settings")
def show(ctx: Context) -> list[Setting]:
    """Show every setting that is in force, and where it comes from."""
    entries = _load(ctx)
    return [_setting(key, entries[name]) for name, key in keys().items()]


@op("config explain", needs="config.read", view="environment.setting")
def explain(ctx: Context, key: Annotated[str, Ref(SETTINGS), Doc("The setting, such as tasks.lease.")]) -> Explained:
    """Show one setting: its value, what it means, what it accepts, and what each layer says of it."""
    wanted = _find(key)
    entries = _load(ctx)[wanted.name]
    return Explained(
        **_setting(wanted, entries).as_dict(),
        default=wanted.default,
        default_shown=show_value(wanted.default),
        accepts=wanted.accepts,
        choices=wanted.choices,
        variable=wanted.variable,
        documentation=wanted.documentation,
        layers=tuple(LayerValue(entry.origin.layer, *_shown(entry)) for entry in entries),
    )


def _load(ctx: Context) -> dict[str, list[Entry]]:
    return load_config(ctx.root_if_any, ctx.environ, ctx.flags).entries


def _setting(key: Key, entries: list[Entry]) -> Setting:
    return Setting(key.name, *_shown(entries[-1]))


def _shown(entry: Entry) -> tuple[Any, str, Origin]:
    return plain_value(entry.value), show_value(entry.value), entry.origin


def _find(name: str) -> Key:
    if name in keys():
        return keys()[name]
    within = [key.name for key in keys().values() if key.section == name]
    hint = f"{name} holds {', '.join(within)}" if within else "`rook config show` lists every key"
    raise NotFound(f"there is no key {name}{did_you_mean(name, list(keys()))}", hint=hint)
