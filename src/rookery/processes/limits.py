"""A process's resource limits and nice value: what a shell's `ulimit` and `nice` give to everything started in it.

A daemon has those of the shell that started it. What it starts for a person gets that person's.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_NAMES = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))
_KINDS = tuple(getattr(resource, name) for name in _NAMES)


def describe(pid: int) -> dict[str, Any]:
    """A process's limits and nice value, for another one that takes them later; nothing if they may not be read."""
    try:
        limits: dict[str, Any] = {name: list(resource.prlimit(pid, getattr(resource, name))) for name in _NAMES}
        return limits | {"nice": os.getpriority(os.PRIO_PROCESS, pid)}
    except (AttributeError, OSError):  # not on Linux, or another user's
        return {}


def take(described: dict[str, Any], pid: int = 0) -> None:
    """Give such limits to this process, or to another one, as far as ours allow."""
    for name, value in described.items():
        with suppress(OSError, ValueError):
            if name == "nice":
                os.setpriority(os.PRIO_PROCESS, pid, value)
            elif name in _NAMES:
                resource.prlimit(pid, getattr(resource, name), tuple(value))


def pass_on(source: int, target: int) -> None:
    """Give a process the limits of another, as far as ours allow."""
    take(describe(source), target)


def can_pass_on(source: int) -> bool:
    """True if our own limits allow what the process has; False, too, if that may not be read: it has another group."""
    try:
        return all(wanted <= own for wanted, own in _compare(source))
    except ProcessLookupError:
        return True  # it has ended, and needs none
    except OSError:
        return False


def are_higher(source: int) -> bool:
    """True if the process has more than we in some way, and less in none."""
    try:
        pairs = _compare(source)
    except OSError:
        return False
    return all(wanted >= own for wanted, own in pairs) and any(wanted > own for wanted, own in pairs)


@contextmanager
def on_processors(count: int, group: int) -> Iterator[None]:
    """What the block starts runs on so many processors, if that is fewer than ours: each group has its own in turn.

    Without effect for 0, and where the system has no such bound. Only for a process without threads.
    """
    if count < 1 or sys.platform != "linux":
        yield
        return
    own = os.sched_getaffinity(0)
    ordered = sorted(own)
    os.sched_setaffinity(0, {ordered[(group * count + number) % len(ordered)] for number in range(count)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def _compare(source: int) -> list[tuple[float, float]]:
    """What the process may have at most, and what we may, by kind; a lower nice value is more."""
    pairs = [
        (_as_number(resource.prlimit(source, kind)[1]), _as_number(resource.getrlimit(kind)[1])) for kind in _KINDS
    ]
    nice = (-os.getpriority(os.PRIO_PROCESS, source), -os.getpriority(os.PRIO_PROCESS, os.getpid()))
    return [*pairs, nice]


def _as_number(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit
