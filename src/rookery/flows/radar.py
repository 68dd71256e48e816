"""The radar: when a turn has ended, a process of its own finds out whose work overlaps, and warns those agents.

The process inherits a lock, so that there is never more than one, not even one that is starting. The loop starts one
that died again: a few times for the same turns, not for ever. The process writes how many ended turns it has seen after
it has warned: killed anywhere, the next one repeats it. A warning and its mail commit together, so no agent gets two.
`python … rookery.flows.radar ROOT LOCK TRY`.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import layout, steps
from rookery.config.environ import forget_runner, now, unmarked_environ
from rookery.config.project import make_state_folder
from rookery.flows import store
from rookery.flows.model import Action, Plan
from rookery.mail.model import SYSTEM
from rookery.merge.merger import Merger
from rookery.merge.radar import service as radar
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.processes import locks
from rookery.processes.proctable import RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached

NAME = "radar"
MOST_TRIES = 3
# By name: it imports this module, which is another program here.
_LOOP = "rookery.flows.loop_process"
_LONGEST_LOG = 100_000
_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """The turns that the radar has not seen."""

    ended: int | None
    """How many turns have ended, if the radar has seen fewer; None if there is nothing to see."""
    is_looking: bool
    tries: int
    """How many processes were started for this very number of turns."""


def read(ctx: Context) -> Facts:
    """How far the radar has come."""
    ended = store.unseen_ends(ctx.db)
    if ended is None:
        return Facts(None, False, 0)
    path = ctx.path(layout.RADAR_LOCK)
    return Facts(ended, locks.is_locked(path), _read_tries(path, ended))


def decide(facts: Facts, _now: float) -> Plan:
    """Start a process, unless one is at work, or too many have failed."""
    if facts.ended is None or facts.is_looking or facts.tries >= MOST_TRIES:
        return Plan()
    return Plan((Action(NAME, "look at the radar", str(facts.ended), "a turn has ended", seen=repr(facts.as_dict())),))


def start_process(ctx: Context, _ended: str = "") -> None:
    """Start the process, if there are turns to see and none is at work."""
    path = ctx.path(layout.RADAR_LOCK)
    make_state_folder(os.path.dirname(path))
    lock = locks.open_file(path)
    try:
        ended = store.unseen_ends(ctx.db) if locks.hold(lock) else None
        if ended is None or (tries := _read_tries(path, ended) + 1) > MOST_TRIES:
            return
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d %d\n" % (ended, tries), 0)
        start_detached(
            [*module_command("rookery.flows.radar"), ctx.root, str(lock), str(tries)],
            cwd=ctx.root,
            env=unmarked_environ() | {RUNNER: "radar"},
            output=ctx.path(layout.RADAR_LOG),
            keep=[lock],
        )
    finally:
        os.close(lock)


ACTIONS = {"look at the radar": start_process}


def run(ctx: Context, lock: int, tries: int) -> None:
    """Warn until every ended turn is seen. A failure is left to the next process; the last try counts as seen."""
    while locks.hold(lock):
        while (ended := store.unseen_ends(ctx.db)) is not None:
            try:
                radar.scan_and_warn(Merger(ctx, SYSTEM))
            except RookError as error:
                _log(error, tries)
                if tries < MOST_TRIES:
                    return
            steps.reached("radar looked")
            with ctx.db.write() as db:
                store.keep_seen(db, ended)
            steps.reached("ends recorded")
        # A process that found the lock held has left its turns to us.
        fcntl.flock(lock, fcntl.LOCK_UN)
        steps.reached("radar let go")
        if store.unseen_ends(ctx.db) is None:
            return


def _read_tries(path: str, ended: int) -> int:
    """How often a process was started for so many ended turns, as the lock file says."""
    words: list[bytes] = []
    with suppress(OSError), open(path, "rb") as file:
        words = file.read(64).split()
    return int(words[1]) if len(words) == 2 and words[0] == b"%d" % ended and words[1].isdigit() else 0


def _log(error: RookError, tries: int) -> None:
    """Add a line to the log, which does not grow for ever."""
    if os.fstat(2).st_size > _LONGEST_LOG:
        os.ftruncate(2, 0)
    os.write(2, f"{stamp(now())} try {tries} failed: {one_line(error.message, _LONGEST_LINE)}\n".encode())


def main() -> None:
    """Run the radar of one project."""
    forget_runner()
    root, lock, tries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(lock, False)
    try:
        db = open_state(root)
        ctx = Context.at(root, db)
        run(ctx, lock, tries)
        import_module(_LOOP).react(ctx)  # agents that were warned may be waiting
    except RookError as error:
        _log(error, tries)


if __name__ == "__main__":
    main()
