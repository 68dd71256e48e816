"""The process that looks at the radar when turns have ended, and is gone when it has seen all of them.

Whoever notices such an end starts it and hands it the lock (`agents/observing.py`), so at most one is at work. What it
has seen is written down after it has looked and warned: killed before that, it looks again, and what was told already
is no news any more. `python -m rookery.merge.observer ROOT LOCK TRY`.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from rookery.agents.home import Home
from rookery.agents.observing import MOST_TRIES, unseen_ends
from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.base.text import one_line
from rookery.config import steps
from rookery.mail.model import SYSTEM
from rookery.merge import warnings
from rookery.merge.desk import Desk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.db.database import Database

_LONGEST_LOG = 100_000
_LONGEST_LINE = 500


def observe(home: Home, lock: int, tries: int) -> None:
    """Look until every end is seen. A look that fails is left to whoever comes next; the last try counts as one."""
    while _take(lock):
        while (ended := unseen_ends(home.db)) is not None:
            try:
                warnings.look(Desk(home, SYSTEM))
            except RookError as error:
                _say(error, tries)
                if tries < MOST_TRIES:
                    return
            steps.reached("radar looked")
            _record(home.db, ended)
            steps.reached("ends recorded")
        # Whoever came while we held the lock has left their turn to us.
        fcntl.flock(lock, fcntl.LOCK_UN)
        steps.reached("radar let go")
        if unseen_ends(home.db) is None:
            return


def _take(lock: int) -> bool:
    """Hold the lock, as we do from the start; False if another was faster after we had let go."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _record(db: Database, ended: int) -> None:
    with db.write():
        db.execute(
            "INSERT INTO radar_seen (one, seq) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq",
            (ended,),
        )


def _say(error: RookError, tries: int) -> None:
    """One line in the log, which does not grow for ever."""
    if os.fstat(2).st_size > _LONGEST_LOG:
        os.ftruncate(2, 0)
    sys.stderr.write(f"{stamp(time.time())} try {tries} failed: {one_line(error.message, _LONGEST_LINE)}\n")


def main() -> None:
    """Look for one project."""
    from rookery.config.compiled import read_config
    from rookery.config.environ import forget_runner, read_environ
    from rookery.ops.state import open_state

    forget_runner()
    root, lock, tries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(lock, False)
    try:
        db = open_state(root)
        observe(Home(root, db, read_config(root, read_environ(), {})), lock, tries)
    except RookError as error:
        _say(error, tries)


if __name__ == "__main__":
    main()
