"""The places between two steps at which a process can die, by name: a test lets a real process die at each of them."""

from __future__ import annotations

import os
import signal

from rookery.base.call import check_interrupted
from rookery.config.environ import read_test

_times: dict[str, int] = {}


def reached(step: str) -> None:
    """Called after every step that a rollback cannot undo.

    An interrupt of the call that is served raises KeyboardInterrupt here, as Ctrl-C may do anywhere in a process.
    `ROOKERY_TEST_KILL=STEP` kills the process here, `STEP:3` at the third time, and `:3` at the third step of any name.
    """
    if target := read_test("KILL"):
        name, _, times = target.partition(":")
        if name in ("", step):
            _times[name] = _times.get(name, 0) + 1
            if _times[name] == int(times or 1):
                os.kill(os.getpid(), signal.SIGKILL)
    check_interrupted()
