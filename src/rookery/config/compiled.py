"""The configuration as it was last read: in a millisecond, as long as none of its files has changed.

Reading it anew loads YAML, the classes of every section and their documentation, 60 ms in all. What the environment or
a flag overrides is always read anew, and so is everything after the slightest doubt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.json import dumps, loads
from rookery.config import layout
from rookery.config.environ import Environ
from rookery.config.loader import load_config
from rookery.config.model import Config
from rookery.config.project import make_state_folder

_FORMAT = 1
# A file that is changed twice within one tick of the clock looks the same after the second time.
_SETTLED_SECONDS = 1.0


class Values:
    """A section, or the whole: read like the class of `model.py` that it stands for, and as little to be changed."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} is a setting, and cannot be set here")


def read_config(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Config:
    """The configuration in force; raises ConfigInvalid as `load_config` does."""
    if root is None or environ.settings or flags:
        return _load(root, environ, flags)
    stamps = _stamps(root, environ)
    found = _read(root, stamps)
    if found is not None:
        return found
    config = _load(root, environ, flags)
    newest = max((each[2] for each in stamps if each is not None), default=0)
    if time.time() - newest / 1e9 > _SETTLED_SECONDS and stamps == _stamps(root, environ):
        _write(root, stamps, config)
    return config


def section(config: Config, name: str) -> dict[str, Any]:
    """What a section says, by the names of its keys; nothing if there is no such section."""
    found: Any = getattr(config, name, None)
    if found is None or isinstance(found, tuple):
        return {}
    return dict(vars(found)) if isinstance(found, Values) else {key: getattr(found, key) for key in found.__slots__}


def _load(root: str | None, environ: Environ, flags: Mapping[str, str]) -> Config:
    return load_config(root, environ, flags).config


def _stamps(root: str, environ: Environ) -> list[list[int] | None]:
    """What tells one state of the files from another: our own code, which knows the defaults, is one of them."""
    own = os.path.join(os.path.dirname(__file__), "model.py")
    files = (layout.path(root, name) for name in (layout.CONFIG, layout.LOCAL_CONFIG))
    return [_stamp(path) for path in (own, environ.user_config, *files)]


def _stamp(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)]


def _read(root: str, stamps: list[list[int] | None]) -> Config | None:
    try:
        with open(layout.path(root, layout.COMPILED_CONFIG), "rb") as file:
            kept = loads(file.read())
        if kept["format"] != _FORMAT or kept["stamps"] != stamps:
            return None
        sections = {name: _section(said) for name, said in kept["sections"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return Values(sections)  # type: ignore[return-value]


def _section(said: Any) -> Any:
    """A section as it is read: keys and values, or a list of such."""
    return tuple(Values(_whole(each)) for each in said) if isinstance(said, list) else Values(_whole(said))


def _whole(section: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in section.items()}


def _write(root: str, stamps: list[list[int] | None], config: Config) -> None:
    path = layout.path(root, layout.COMPILED_CONFIG)
    try:
        make_state_folder(os.path.dirname(path))
        write_whole(path, dumps({"format": _FORMAT, "stamps": stamps, "sections": asdict(config)}))
    except OSError:
        return  # a disk that is full or not ours to write costs time, and nothing else
