"""Runs the loop at the end of a command, and in a process of its own where a project has no daemon.

Every command runs it once at its end, unless a loop runs already. If runners are at work then, a process of its own
goes on with it as long as there are any (`flows/loop_start.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from rookery.base.clock import stamp
from rookery.config import layout
from rookery.config.environ import now
from rookery.config.presence import Presence
from rookery.config.project import make_state_folder
from rookery.flows import loop
from rookery.flows.loop import Assessment
from rookery.flows.reactor import Reactor
from rookery.flows.workload import is_needed
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.turns.loop_supervisor import start_loop

_SOON = 30.0
"""A process waits for a timer that is due within so many seconds."""


def react(ctx: Context) -> None:
    """Run the loop once, if no process runs it, and start one that goes on if it is needed."""
    while (file := loop.take_lock(ctx.root)) is not None:
        try:
            assessment = loop.run_once(ctx, lambda text: _log(ctx.root, text))
        finally:
            os.close(file)
        if not assessment.is_quiet(ctx.clock(), _SOON):
            start_loop(ctx.root)
            return
        # A command or a gate that ended while we held the lock has left its actions to us.
        if not is_needed(ctx.root, ctx.db) or not _has_more(loop.assess(ctx), assessment):
            return


def _has_more(now: Assessment, before: Assessment) -> bool:
    """True if there is something to do that was not yet to do before."""
    return not set(now.plan.actions) <= set(before.plan.actions)


@contextmanager
def open_project(root: str) -> Iterator[Context]:
    """The project, to assess it once or for one action."""
    with closing(open_state(root)) as db:
        ctx = Context.at(root, db)
        _ = ctx.config  # settings that cannot be read stop the loop at once, not one action after the other
        yield ctx


def run_loop(root: str) -> None:
    """Run the loop until no runner is at work and nothing is due soon; do nothing if another process runs it."""
    presence = Presence(root)  # before anything else: what follows is of this project, or finds it gone
    while (file := loop.take_lock(root)) is not None:
        reactor = Reactor(root, lambda: open_project(root), lambda text: _log(root, text), presence)
        try:
            reactor.open()
            reactor.run(lambda assessment: assessment.is_quiet(now(), _SOON))
        finally:
            reactor.close()
            os.close(file)
        if reactor.is_over:
            return  # the project is gone; perhaps there is a new one
        with open_project(root) as ctx:  # a command that ended while we held the lock has left its actions to us
            assessment = loop.assess(ctx)
            if not assessment.plan.actions and assessment.is_quiet(ctx.clock(), _SOON):
                return


def _log(root: str, text: str) -> None:
    """Add a line to the loop's log."""
    with suppress(OSError):
        make_state_folder(layout.path(root, layout.LOGS))
        with open(layout.path(root, layout.LOOP_LOG), "ab", buffering=0) as file:
            file.write(f"{stamp(now())} [{os.getpid()}] {text}\n".encode(errors="backslashreplace"))
