"""The program that has a project's loop run: it starts the daemon, or runs the loop itself where there is none.

Runners start it when no loop runs, and so does the process that sees the end of a killed daemon. It loads little before
it starts the daemon. `python … rookery.flows.loop_start ROOT [--if-needed]`.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from importlib import import_module

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.config.environ import forget_runner, now, uses_daemon
from rookery.config.project import is_project
from rookery.flows.workload import is_anything_alive
from rookery.ops.state import open_state
from rookery.ops.state_owner import check_state

# By name: the daemon is above us, and the loop loads almost everything.
_DAEMON, _LOOP = "rookery.daemon.start", "rookery.flows.loop_process"


def main() -> None:
    """Have one project's loop run."""
    forget_runner()
    root = sys.argv[1]
    try:
        if not is_project(root):
            return  # it was deleted
        check_state(root)  # before anything is written there
        if "--if-needed" in sys.argv[2:]:
            with closing(open_state(root)) as db:
                if not is_anything_alive(root, db):
                    return
        if not (uses_daemon() and _has_daemon(root)):
            import_module(_LOOP).run_loop(root)
    except (RookError, OSError) as error:
        line = f"{stamp(now())} [{os.getpid()}] the loop ends: {error}\n"
        os.write(2, line.encode(errors="backslashreplace"))


def _has_daemon(root: str) -> bool:
    """Start the project's daemon if there is none; False if it cannot be."""
    start = import_module(_DAEMON)
    try:
        start.start_daemon(root)
    except start.CannotStart:
        return False
    return True


if __name__ == "__main__":
    main()
