"""The work of the day: when it is due, a process of its own makes the backup and prunes (`upkeep/pruning.py`).

The process inherits a lock, so that there is never more than one. It is put off for an hour before it is begun, so that
one that dies is not started over and over. `python … rookery.flows.daily ROOT LOCK`.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.environ import forget_runner, now, unmarked_environ
from rookery.config.project import make_state_folder
from rookery.flows.model import Action, Plan
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.processes import locks
from rookery.processes.proctable import RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached
from rookery.upkeep import pruning
from rookery.upkeep.due import is_due

NAME = "daily"
_ACTION = "back up and prune"
_LONGEST_LOG = 100_000


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """Whether the work of the day has to be done."""

    is_due: bool
    is_working: bool


def read(ctx: Context) -> Facts:
    """Whether it is due, and whether a process is at it."""
    has_come = is_due(ctx.root, ctx.clock())
    return Facts(has_come, has_come and locks.is_locked(ctx.path(layout.UPKEEP_LOCK)))


def decide(facts: Facts, _now: float) -> Plan:
    """Start a process, unless one is at work. No timer: the loop looks every minute, and nothing waits for it."""
    if not facts.is_due or facts.is_working:
        return Plan()
    return Plan((Action(NAME, _ACTION, "project", "a day has passed", seen=repr(facts.as_dict())),))


def start_process(ctx: Context, _subject: str = "") -> None:
    """Start the process, if it is due and none is at work."""
    path = ctx.path(layout.UPKEEP_LOCK)
    make_state_folder(os.path.dirname(path))
    lock = locks.open_file(path)
    try:
        if not (locks.hold(lock) and is_due(ctx.root, ctx.clock())):
            return
        pruning.begin(ctx)
        start_detached(
            [*module_command("rookery.flows.daily"), ctx.root, str(lock)],
            cwd=ctx.root,
            env=unmarked_environ() | {RUNNER: "upkeep"},
            output=ctx.path(layout.UPKEEP_LOG),
            keep=[lock],
        )
    finally:
        os.close(lock)


ACTIONS = {_ACTION: start_process}


def main() -> None:
    """Do the work of the day of one project."""
    forget_runner()
    root, lock = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(lock, False)
    if os.fstat(2).st_size > _LONGEST_LOG:
        os.ftruncate(2, 0)
    try:
        with closing(open_state(root)) as db:
            done = pruning.do_due(Context.at(root, db))
        text = ", ".join(f"{name} {value}" for name, value in done.as_dict().items() if value) or "nothing was old"
    except (RookError, OSError) as error:
        text = f"failed: {error}"
    os.write(2, f"{stamp(now())} {text}\n".encode(errors="backslashreplace"))


if __name__ == "__main__":
    main()
