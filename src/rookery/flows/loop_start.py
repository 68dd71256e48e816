"""The program that sees to it that a project's loop runs: it starts the daemon, or without one becomes the loop itself.

Runners start it when they find that no loop runs, and so does what sees the end of a daemon that was killed. It loads
little before the daemon is on its way. `python … rookery.flows.loop_start ROOT [--if-needed]`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.config.environ import forget_runner, now, uses_daemon
from rookery.flows.need import is_anything_alive
from rookery.ops.state import open_state
from rookery.ops.state_owner import check_state

# By name: the daemon stands above us, and the loop loads almost everything.
_DAEMON, _LOOP = "rookery.daemon.start", "rookery.flows.loop_process"


def main() -> None:
    """Have the loop of one project run."""
    forget_runner()
    root = sys.argv[1]
    try:
        check_state(root)  # before anything is written there
        if "--if-needed" in sys.argv[2:] and not _is_needed(root):
            return
        if not (uses_daemon() and _has_daemon(root)):
            import_module(_LOOP).run_loop(root)
    except (RookError, OSError) as error:
        line = f"{stamp(now())} [{os.getpid()}] the loop ends: {error}\n"
        os.write(2, line.encode(errors="backslashreplace"))


def _is_needed(root: str) -> bool:
    db = open_state(root)
    try:
        return is_anything_alive(root, db)
    finally:
        db.close()


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
