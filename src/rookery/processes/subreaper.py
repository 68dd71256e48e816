"""Taking in what a child leaves behind: the processes under us whose parent has ended become our children, not init's.

So the line of parents of whatever an agent starts always leads to the process that started the agent (`ops.caller`
looks at it), and at the end of a turn everything that is left can be found by descent. Linux only; elsewhere nothing
happens.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_CHILD_SUBREAPER = 36
_adopting: list[int] = []


def adopt_orphans() -> None:
    """Become the parent of what is orphaned under this process. It stays so when the process goes on as another
    program, and is not inherited by children."""
    if sys.platform != "linux":
        return
    try:
        if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting.append(os.getpid())
    except (AttributeError, OSError):  # a C library without it
        return


def adopts_orphans() -> bool:
    """True if this very process does."""
    return os.getpid() in _adopting


def collect_orphans() -> None:
    """Take note of those that have ended. Only while no child of our own is waited for elsewhere."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
