"""The one loader. Later wins: defaults, the user's file, the project's, its local one, the environment, flags.

Every value knows where it comes from, and every mistake of every layer is told at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from rookery.base.errors import ConfigInvalid
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config.environ import Environ
from rookery.config.file import read_file, unknown_key
from rookery.config.model import Config
from rookery.config.project import FOLDER
from rookery.config.schema import Key, keys, sections
from rookery.config.values import BadValue, from_text
from rookery.config.yaml_file import Mistake

DEFAULT = "default"
USER = "user"
PROJECT = "project"
LOCAL = "local"
ENVIRONMENT = "environment"
FLAG = "flag"

FILE = "config.yaml"
LOCAL_FILE = "config.local.yaml"


@dataclass(frozen=True, slots=True)
class Origin(Record):
    """Where a value comes from: its layer, and the file and line, the variable or the flag."""

    layer: str
    source: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.layer if not self.source else self.source + (f":{self.line}" if self.line else "")


@dataclass(frozen=True, slots=True)
class Said(Record):
    """What one layer says of a key."""

    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Gathered(Record):
    """What all layers say of each key, the lowest first, and what is wrong with them."""

    said: dict[str, list[Said]]
    mistakes: tuple[Mistake, ...]


@dataclass(frozen=True, slots=True)
class Loaded(Record):
    """The configuration in force, and how it came about."""

    config: Config
    origins: dict[str, Origin]
    said: dict[str, list[Said]]


def load_config(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Loaded:
    """The configuration of a project, or of no project; raises ConfigInvalid with every mistake that there is."""
    gathered = gather(root, environ, flags)
    if gathered.mistakes:
        raise ConfigInvalid(
            "\n".join(str(mistake) for mistake in gathered.mistakes),
            hint="mend the lines above; `rook doctor` checks again, and the configuration reference lists every key",
        )
    in_force = {name: said[-1] for name, said in gathered.said.items()}
    return Loaded(
        _build({name: said.value for name, said in in_force.items()}),
        {name: said.origin for name, said in in_force.items()},
        gathered.said,
    )


def gather(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Gathered:
    """Ask every layer. Nothing is raised: mistakes are collected."""
    said = {key.name: [Said(key.default, Origin(DEFAULT))] for key in keys().values()}
    mistakes: list[Mistake] = []
    for layer, path in _files(root, environ):
        read = read_file(path)
        mistakes += read.mistakes
        for name, written in read.values.items():
            said[name].append(Said(written.value, Origin(layer, path, written.line, written.column)))
    for layer, source, name, text in (*_from_environment(environ), *_from_flags(flags)):
        try:
            value = from_text(_known(name), text)
        except BadValue as error:
            mistakes.append(Mistake(source, error.message))
        else:
            said[name].append(Said(value, Origin(layer, source)))
    return Gathered(said, tuple(mistakes))


def _files(root: str | None, environ: Environ) -> list[tuple[str, str]]:
    if root is None:
        return [(USER, environ.user_config)]
    return [
        (USER, environ.user_config),
        (PROJECT, os.path.join(root, FOLDER, FILE)),
        (LOCAL, os.path.join(root, FOLDER, LOCAL_FILE)),
    ]


def _from_environment(environ: Environ) -> Iterator[tuple[str, str, str, str]]:
    """The variables that set a key, or that look as if they should. An empty one counts as not set."""
    by_variable = {key.variable: key.name for key in keys().values()}
    for variable, text in sorted(environ.settings.items()):
        if not text:
            continue
        name = by_variable.get(variable) or _guess_name(variable)
        if name is not None:
            yield ENVIRONMENT, variable, name, text


def _guess_name(variable: str) -> str | None:
    """The key that a variable would name, if it begins with a section of ours; others' variables are left alone."""
    section, _, field = variable.removeprefix("ROOKERY_").lower().partition("_")
    return f"{section}.{field}" if section in sections() and field else None


def _from_flags(flags: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    for name, text in flags.items():
        yield FLAG, f"-c {one_line(name)}", name, text


def _known(name: str) -> Key:
    if name not in keys():
        raise BadValue(unknown_key(name))
    return keys()[name]


def _build(values: Mapping[str, Any]) -> Config:
    kinds = get_type_hints(Config)
    made = {}
    for section in fields(Config):
        if section.name in values:  # it is a list
            made[section.name] = values[section.name]
            continue
        cls = kinds[section.name]
        made[section.name] = cls(**{one.name: values[f"{section.name}.{one.name}"] for one in fields(cls)})
    return Config(**made)
