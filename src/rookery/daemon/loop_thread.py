"""The loop in the daemon: a thread of its own that waits, and others that act, as calls of the project itself."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rookery.base.call import Call, serving
from rookery.config import layout
from rookery.config.presence import Presence
from rookery.db.pool import Pool
from rookery.environment.service import acting_alone, own_environ
from rookery.flows.loop_process import open_project
from rookery.flows.reactor import Reactor
from rookery.ops.context import Context
from rookery.ops.location import read_notice
from rookery.processes import locks

_STOP_SECONDS = 5.0
_PAUSE_SECONDS = 5.0
_UMASK = 0o022


def start(
    root: str, connections: Pool, log: Callable[[str], None], presence: Presence, on_gone: Callable[[], None]
) -> Reactor:
    """Run the project's loop in a thread, as soon as no other process runs it, until it is stopped."""
    notice = ""

    @contextmanager
    def open_as_call() -> Iterator[Context]:
        nonlocal notice
        with acting_alone():
            environ = own_environ(root)
        call = Call(environ=environ, cwd=root, umask=_UMASK, pid=os.getpid(), connections=connections)
        with serving(call), open_project(root) as ctx:
            # The loop is often the first to see that a project was copied or moved; a person's call reports it later.
            before, notice = notice, read_notice(root)
            if notice not in ("", before):
                log(notice)
            yield ctx

    reactor = Reactor(root, open_as_call, log, presence, on_gone)
    reactor.open()
    threading.Thread(target=_run, args=(root, reactor, log), name="loop", daemon=True).start()
    return reactor


def _run(root: str, reactor: Reactor, log: Callable[[str], None]) -> None:
    try:
        lock = locks.open_file(layout.path(root, layout.LOOP_LOCK))
    except OSError as error:
        log(f"no loop can run: {error}")
        reactor.give_up()  # its folder is gone: so is the project, or the next daemon makes it again
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while not reactor.is_over:
            try:
                reactor.run()
            except Exception as error:  # settings that cannot be read, a full disk: that passes
                log(f"the loop begins again: {type(error).__name__}: {error}")
                reactor.rest(_PAUSE_SECONDS)
        reactor.wait(_STOP_SECONDS)  # the next daemon begins as soon as what is under way has ended
    finally:
        os.close(lock)
