"""Runs the loop at the end of a command, and in a process of its own where a project has no daemon.

Every command ends with one look, unless a loop runs already. If runners are at work then, a process goes on with it as
long as there are any (`flows/loop_start.py`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rookery.base.clock import stamp
from rookery.config import layout
from rookery.config.environ import now, unmarked_environ
from rookery.config.project import make_state_folder
from rookery.flows import loop
from rookery.flows.reactor import Reactor
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.processes.proctable import RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached

_SOON = 30.0
"""A timer that is due within so many seconds is worth a process that waits for it."""


def react(ctx: Context) -> None:
    """Look once, if no loop runs, and see to it that one does if it is needed."""
    file = loop.take_lock(ctx.root)
    if file is None:
        return
    try:
        found = loop.run_once(ctx, lambda text: _log(ctx.root, text))
    finally:
        os.close(file)
    if not found.is_quiet(ctx.clock(), _SOON):
        start(ctx.root)


def start(root: str) -> None:
    """Start a process that runs the loop as long as it is needed."""
    start_detached(
        [*module_command("rookery.flows.loop_start"), root],
        cwd=root,
        env=unmarked_environ() | {RUNNER: "loop"},
        output=_log_path(root),
    )


@contextmanager
def open_project(root: str) -> Iterator[Context]:
    """The project, for one look or one action."""
    db = open_state(root)
    try:
        ctx = Context.at(root, db)
        _ = ctx.config  # settings that cannot be read stop the whole look, not one action after the other
        yield ctx
    finally:
        db.close()


def run_loop(root: str) -> None:
    """Run the loop until no runner is at work and nothing is due soon; nothing if another process runs it."""
    while (file := loop.take_lock(root)) is not None:
        reactor = Reactor(root, lambda: open_project(root), _start_thread, lambda text: _log(root, text))
        try:
            reactor.open()
            reactor.run(lambda found: found.is_quiet(now(), _SOON))
        finally:
            reactor.close()
            os.close(file)
        with open_project(root) as ctx:  # a command that came while we held the lock has left its look to us
            found = loop.look(ctx)
            if not found.plan.actions and found.is_quiet(ctx.clock(), _SOON):
                return


def _start_thread(job: Callable[[], None]) -> None:
    threading.Thread(target=job, name="action", daemon=True).start()


def _log(root: str, text: str) -> None:
    """One line in the loop's log."""
    with suppress(OSError), open(_log_path(root), "ab", buffering=0) as file:
        file.write(f"{stamp(now())} [{os.getpid()}] {text}\n".encode(errors="backslashreplace"))


def _log_path(root: str) -> str:
    """What the loop has to say; its folder is made where the project is."""
    with suppress(OSError):
        make_state_folder(layout.path(root, layout.LOGS))
    return layout.path(root, layout.LOOP_LOG)
