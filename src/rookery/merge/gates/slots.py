"""Slots: how many gates of a project run at once, in all of its processes together.

A slot is a file with a lock. A merger takes it before it makes the gate's folder, and hands the open file to the gate's
runner. So it is free again when the runner ends, or when the merger is killed before there is one.
"""

from __future__ import annotations

import os
import sys

from rookery.config import layout
from rookery.config.project import make_state_folder
from rookery.ops.context import Context
from rookery.processes import locks

_MOST_BY_DEFAULT = 4


def count(ctx: Context) -> int:
    """How many there are: as configured, else half of the processors that we may use, from 1 to 4."""
    if ctx.config.merge.slots:
        return ctx.config.merge.slots
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(_MOST_BY_DEFAULT, processors // 2))


class Slot:
    """One place to run a gate in, once there is one."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.number = -1
        self.file = -1
        """The open file, locked; -1 while we have none."""

    def take(self) -> bool:
        """True if we have a slot; else take one that is free."""
        if self.file < 0:
            make_state_folder(self._ctx.path(layout.RUN))
            make_state_folder(self._ctx.path(layout.SLOTS))
            for number in range(count(self._ctx)):
                file = locks.take(self._ctx.path(layout.SLOTS, str(number)))
                if file is not None:
                    self.number, self.file = number, file
                    break
        return self.file >= 0

    def close(self) -> None:
        """Let go of it; a runner that has the open file keeps it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
