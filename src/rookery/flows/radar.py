"""The radar: when a turn has ended, a process of its own looks whose work overlaps, and warns them.

The process is given a lock, so that there is never more than one, not even one on its way. One that dies is started
again: a few times for the same turns, not for ever. How many ended turns it has seen is written after it has warned, so
that killed anywhere it looks again; a warning and its mail commit together, and no agent is told twice.
`python … rookery.flows.radar ROOT LOCK TRY`.
"""

from __future__ import annotations

import fcntl
import os
import sys
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
# By name: it loads us, and here we are another program.
_LOOP = "rookery.flows.loop_process"
_LONGEST_LOG = 100_000
_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """What the radar has not seen."""

    ended: int | None
    """How many turns have ended, if the radar has seen fewer; None if there is nothing to see."""
    is_looking: bool
    tries: int
    """How often a process was started for this very number of turns."""


def read(ctx: Context) -> Facts:
    """How far the radar has come."""
    ended = store.unseen_ends(ctx.db)
    if ended is None:
        return Facts(None, False, 0)
    try:
        lock = os.open(_lock_path(ctx.root), os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # it is not there yet; where it cannot be made, the action says why
        return Facts(ended, False, 0)
    try:
        return Facts(ended, not locks.hold(lock), _read_tries(lock, ended))
    finally:
        os.close(lock)


def decide(facts: Facts, now: float) -> Plan:
    """Look, unless a process does so already, or too many have failed."""
    del now
    if facts.ended is None or facts.is_looking or facts.tries >= MOST_TRIES:
        return Plan()
    return Plan((Action(NAME, "look at the radar", str(facts.ended), "a turn has ended", seen=repr(facts.as_dict())),))


def start_look(ctx: Context, _ended: str = "") -> None:
    """Start the process that looks, if there is something to see and none is at work."""
    make_state_folder(os.path.dirname(_lock_path(ctx.root)))
    lock = locks.open_file(_lock_path(ctx.root))
    try:
        ended = store.unseen_ends(ctx.db) if locks.hold(lock) else None
        if ended is None:
            return
        tries = _read_tries(lock, ended) + 1
        if tries > MOST_TRIES:
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


ACTIONS = {"look at the radar": start_look}


def look(ctx: Context, lock: int, tries: int) -> None:
    """Look until every end is seen. A look that fails is left to the next process; the last try counts as one."""
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
        # A process that came while we held the lock has left its turn to us.
        fcntl.flock(lock, fcntl.LOCK_UN)
        steps.reached("radar let go")
        if store.unseen_ends(ctx.db) is None:
            return


def _lock_path(root: str) -> str:
    return layout.path(root, layout.RADAR_LOCK)


def _read_tries(lock: int, ended: int) -> int:
    words = os.pread(lock, 64, 0).split()
    return int(words[1]) if len(words) == 2 and words[0] == b"%d" % ended and words[1].isdigit() else 0


def _log(error: RookError, tries: int) -> None:
    """One line in the log, which does not grow for ever."""
    if os.fstat(2).st_size > _LONGEST_LOG:
        os.ftruncate(2, 0)
    os.write(2, f"{stamp(now())} try {tries} failed: {one_line(error.message, _LONGEST_LINE)}\n".encode())


def main() -> None:
    """Look for one project."""
    forget_runner()
    root, lock, tries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(lock, False)
    try:
        db = open_state(root)
        ctx = Context.at(root, db)
        look(ctx, lock, tries)
        import_module(_LOOP).react(ctx)  # those who were warned may be waiting
    except RookError as error:
        _log(error, tries)


if __name__ == "__main__":
    main()
