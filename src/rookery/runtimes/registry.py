"""Every runtime, by name. One line each; the module is imported when it is used."""

from __future__ import annotations

from importlib import import_module

from rookery.base.errors import InvalidInput
from rookery.runtimes.model import Runtime

RUNTIMES = {
    "scripted": "rookery.runtimes.scripted",
    "claude": "rookery.runtimes.claude",
}


def open_runtime(name: str) -> Runtime:
    """The runtime of that name."""
    if name not in RUNTIMES:
        raise InvalidInput(f"no runtime {name}", hint="one of " + ", ".join(RUNTIMES))
    module: Runtime = import_module(RUNTIMES[name])
    return module
