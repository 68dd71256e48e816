"""A process's resource limits and nice value: what a shell's `ulimit` and `nice` give to everything started in it.

A daemon has those of the shell that started it. What it starts for another caller gets that caller's.
"""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    Limit = tuple[int, int]

_KINDS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


def pass_on(source: int, target: int) -> None:
    """Give a process the limits of another; raises OSError or ValueError if ours are too low for that."""
    for kind in _KINDS:
        wanted = resource.prlimit(source, kind)
        if wanted != resource.prlimit(target, kind):
            resource.prlimit(target, kind, wanted)
    nice = os.getpriority(os.PRIO_PROCESS, source)
    if nice != os.getpriority(os.PRIO_PROCESS, target):
        os.setpriority(os.PRIO_PROCESS, target, nice)


def can_pass_on(source: int) -> bool:
    """True if our own limits allow what the process has."""
    try:
        if os.getpriority(os.PRIO_PROCESS, source) < os.getpriority(os.PRIO_PROCESS, 0):
            return False
        return not any(_is_more(resource.prlimit(source, kind)[1], resource.getrlimit(kind)[1]) for kind in _KINDS)
    except OSError:
        return True  # it has gone, and will not miss it


def _is_more(one: int, other: int) -> bool:
    if other == resource.RLIM_INFINITY:
        return False
    return one == resource.RLIM_INFINITY or one > other
