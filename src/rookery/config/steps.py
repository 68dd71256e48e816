"""The places between two steps at which a process can die or be interrupted, by name, so that tests do so at each."""

from __future__ import annotations

import os
import signal

from rookery.base.call import check_interrupted, current, sleep
from rookery.config.environ import read_test

_PATIENCE = 30.0
_times: dict[tuple[str, str, str], int] = {}


def reached(step: str) -> None:
    """Called after every step that a rollback cannot undo.

    An interrupt of the call that is served raises KeyboardInterrupt here, as Ctrl-C may do anywhere in a process.
    `ROOKERY_TEST_KILL=STEP` kills the process here, `STEP:3` at the third time, and `:3` at the third step of any name.
    `ROOKERY_TEST_INTERRUPT` takes the same, and interrupts the calling process, as Ctrl-C in its terminal does;
    `ROOKERY_TEST_VANISH` kills it. `ROOKERY_TEST_STOP` takes the same, and stops the process until it is continued.
    """
    if _is_due("KILL", step):
        os.kill(os.getpid(), signal.SIGKILL)
    if _is_due("STOP", step):
        os.kill(os.getpid(), signal.SIGSTOP)
    for what, number in (("INTERRUPT", signal.SIGINT), ("VANISH", signal.SIGKILL)):
        if _is_due(what, step):
            call = current()
            os.kill(os.getpid() if call is None else call.pid, number)
            sleep(_PATIENCE)  # until we are told
    check_interrupted()


def _is_due(what: str, step: str) -> bool:
    target = read_test(what)
    if not target:
        return False
    name, _, times = target.partition(":")
    if name not in ("", step):
        return False
    call = current()
    counted = ("" if call is None else call.id, what, name)
    _times[counted] = _times.get(counted, 0) + 1
    return _times[counted] == int(times or 1)
