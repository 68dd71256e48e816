"""Adopting orphans: processes under us whose parent has ended become our children, not init's.

So the parents of whatever an agent starts always lead to the process that started the agent (`ops.caller` looks at
them), and at the end of a turn descent leads to everything that is left. Linux only; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_adopting: list[int] = []


def adopt_orphans() -> None:
    """Become the parent of what is orphaned under this process, also after it goes on as another program.

    Children do not inherit this.
    """
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
    """Collect those that have ended. Only while nothing else waits for a child of ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
