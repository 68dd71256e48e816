"""Starts a project's loop where none runs. Every runner watches: a daemon may be killed when no command comes."""

from __future__ import annotations

import fcntl
import random
import threading
import time
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.config import layout
from rookery.config.environ import unmarked_environ
from rookery.config.presence import Presence
from rookery.config.project import is_project, make_state_folder
from rookery.processes import locks
from rookery.processes.proctable import LOOP, RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
# By name: it is above us, and another program to us.
_LOOP = "rookery.flows.loop_start"


def supervise_loop(root: str, presence: Presence) -> None:
    """Have a thread wait until no loop runs and start one, again and again; more and more slowly if that fails."""
    threading.Thread(target=_supervise, args=(root, presence), daemon=True).start()


def start_loop(root: str) -> bool:
    """Start a loop unless one runs; False if one does."""
    if locks.is_locked(layout.path(root, layout.LOOP_LOCK)) or not is_project(root):
        return False
    make_state_folder(layout.path(root, layout.LOGS))
    start_detached(
        [*module_command(_LOOP), root],
        cwd=root,
        env=unmarked_environ() | {RUNNER: LOOP},  # else it would end with this agent's other processes
        output=layout.path(root, layout.LOOP_LOG),
    )
    return True


def _supervise(root: str, presence: Presence) -> None:
    pause = _FIRST_PAUSE
    with suppress(OSError):  # the project is gone
        while True:
            _wait_for_end(layout.path(root, layout.LOOP_LOCK))
            # The daemon's fork server and a person's next call start one sooner; of many runners one comes first.
            time.sleep(pause * (1 + random.random()))  # noqa: S311
            if presence.is_gone() or presence.is_in_doubt:
                return
            has_started = True
            with suppress(RookError):  # no process can be started just now
                has_started = start_loop(root)
            if has_started:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE


def _wait_for_end(path: str) -> None:
    """Wait until no process holds the lock."""
    with open(locks.open_file(path), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
