"""The one loader. Later wins: defaults, the user's file, the project's, its local one, the environment, flags.

Every value knows where it comes from, and an error lists every mistake of every layer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from typing import Any

from rookery.base.errors import ConfigInvalid
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import layout
from rookery.config.environ import Environ, read_environ
from rookery.config.model import Config
from rookery.config.schema import keys, sections
from rookery.config.sources import Entry, Origin, read_file, read_text

DEFAULT = "default"
USER = "user"
PROJECT = "project"
LOCAL = "local"
ENVIRONMENT = "environment"
FLAG = "flag"

# A file that is changed twice within one tick of the clock looks the same after the second time.
_SETTLED_SECONDS = 1.0

_Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Loaded(Record):
    """The configuration in force, and where its values come from."""

    config: Config
    entries: dict[str, list[Entry]]
    """The values of each key in all layers, the lowest first; the last one is in force."""


def read_config(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Config:
    """The configuration in force, as it was last read if no file has changed; raises ConfigInvalid."""
    stamps = tuple(_stamp(path) for _layer, path in _files(root, environ.user_config))
    newest = max((stamp[2] for stamp in stamps if stamp is not None), default=0)
    if environ.settings or flags or time.time() - newest / 1e9 <= _SETTLED_SECONDS:
        return load_config(root, environ, flags).config
    return _read_settled(root, environ.user_config, stamps)


@lru_cache(maxsize=8)
def _read_settled(root: str | None, user_config: str, _stamps: tuple[_Stamp, ...]) -> Config:
    """What files with these stamps hold. A file that changes while it is read has another stamp the next time."""
    return load_config(root, read_environ({}).replace(user_config=user_config), {}).config


def _stamp(path: str) -> _Stamp:
    """What tells one state of a file from another."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # if the file is there and cannot be read, loading it raises an error
    return status.st_ino, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns)


def section(config: Config, name: str) -> dict[str, Any]:
    """The values of a section by the names of its keys; empty if there is no such section."""
    values: Any = getattr(config, name, None)
    return asdict(values) if is_dataclass(values) and not isinstance(values, type) else {}


def load_config(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Loaded:
    """The configuration of a project, or outside of one; raises ConfigInvalid with every mistake."""
    entries, mistakes = gather(root, environ, flags)
    if mistakes:
        raise ConfigInvalid(
            "\n".join(mistakes),
            hint="correct the lines above; `rook doctor` checks again, and the configuration reference lists every key",
        )
    in_force = {name: values[-1].value for name, values in entries.items()}
    tree = {
        name: in_force[name] if part.is_list else part.model(**{key.field: in_force[key.name] for key in part.keys})
        for name, part in sections().items()
    }
    return Loaded(Config(**tree), entries)


def gather(root: str | None, environ: Environ, flags: Mapping[str, str]) -> tuple[dict[str, list[Entry]], list[str]]:
    """The values of each key in all layers, and every mistake in them; raises nothing."""
    entries = {key.name: [Entry(key.default, Origin(DEFAULT))] for key in keys().values()}
    sources = [read_file(layer, path) for layer, path in _files(root, environ.user_config)]
    sources += [read_text(layer, name, key, text) for layer, name, key, text in _texts(environ, flags)]
    for source in sources:
        for name, entry in source.values.items():
            entries[name].append(entry)
    return entries, [mistake for source in sources for mistake in source.mistakes]


def _files(root: str | None, user_config: str) -> list[tuple[str, str]]:
    if root is None:
        return [(USER, user_config)]
    return [
        (USER, user_config),
        (PROJECT, layout.path(root, layout.CONFIG)),
        (LOCAL, layout.path(root, layout.LOCAL_CONFIG)),
    ]


def _texts(environ: Environ, flags: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """The variables that set a key, or that look as if they should, then the flags. An empty variable is not set."""
    by_variable = {key.variable: key.name for key in keys().values()}
    for variable, text in sorted(environ.settings.items()):
        if not text:
            continue
        name = by_variable.get(variable) or _guess_name(variable)
        if name is not None:
            yield ENVIRONMENT, variable, name, text
    for name, text in flags.items():
        yield FLAG, f"-c {one_line(name)}", name, text


def _guess_name(variable: str) -> str | None:
    """The key that a variable would name, if it begins with a section of ours; others' variables are left alone."""
    section, _, field = variable.removeprefix("ROOKERY_").lower().partition("_")
    return f"{section}.{field}" if section in sections() and field else None
