"""Every runtime, by name: one line each."""

from __future__ import annotations

from rookery.base.errors import InvalidInput
from rookery.runtimes import claude, scripted
from rookery.runtimes.model import Runtime

RUNTIMES: dict[str, Runtime] = {"scripted": scripted, "claude": claude}


def open_runtime(name: str) -> Runtime:
    """The runtime of that name."""
    if name not in RUNTIMES:
        raise InvalidInput(f"no runtime {name}", hint="one of " + ", ".join(RUNTIMES))
    return RUNTIMES[name]
