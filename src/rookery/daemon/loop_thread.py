"""The loop in the daemon: a thread of its own that waits, and others that act, as calls of the project itself."""

from __future__ import annotations

import fcntl
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rookery.base.call import Call, serving
from rookery.config import layout
from rookery.daemon.threads import Threads
from rookery.db.pool import Pool
from rookery.environment.service import acting_alone, own_environ
from rookery.flows.loop_process import open_project
from rookery.flows.reactor import Reactor
from rookery.ops.context import Context
from rookery.ops.location import read_notice
from rookery.processes import locks

_MOST_THREADS = 8
_STOP_SECONDS = 5.0
_PAUSE_SECONDS = 5.0
_UMASK = 0o022


class LoopThread:
    """One project's loop, for as long as its daemon serves."""

    def __init__(self, root: str, connections: Pool, log: Callable[[str], None]) -> None:
        self._root = root
        self._connections = connections
        self._log = log
        self._threads = Threads(_MOST_THREADS)
        self._reactor = Reactor(root, self._open_project, self._threads.run, log)
        self._notice = ""

    def start(self) -> None:
        """Begin, as soon as no other process runs the loop."""
        self._reactor.open()
        threading.Thread(target=self._run, name="loop", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more, and let the next daemon begin as soon as what is under way has ended."""
        self._reactor.stop()

    @property
    def is_needed(self) -> bool:
        """True while a runner is at work or a timer is set."""
        last = self._reactor.last
        return last is not None and (last.plan.running > 0 or bool(last.plan.timers))

    def _run(self) -> None:
        lock = _wait_for_lock(self._root)
        try:
            while not self._reactor.is_over:
                try:
                    self._reactor.run()
                except Exception as error:  # settings that cannot be read, a full disk: that passes
                    self._log(f"the loop begins again: {type(error).__name__}: {error}")
                    self._reactor.rest(_PAUSE_SECONDS)
            self._reactor.wait(_STOP_SECONDS)
        finally:
            os.close(lock)

    @contextmanager
    def _open_project(self) -> Iterator[Context]:
        with acting_alone():
            environ = own_environ(self._root)
        call = Call(
            environ=environ,
            cwd=self._root,
            umask=_UMASK,
            pid=os.getpid(),
            streams=(io.StringIO(), io.StringIO(), io.StringIO()),
            connections=self._connections,
        )
        with serving(call), open_project(self._root) as ctx:
            self._log_notice()
            yield ctx

    def _log_notice(self) -> None:
        """The loop is often the first to see that a project was copied or moved; a person's call reports it later."""
        text = read_notice(self._root)
        if text and text != self._notice:
            self._log(text)
        self._notice = text


def _wait_for_lock(root: str) -> int:
    """The lock of the loop, as soon as no other process has it."""
    file = locks.open_file(layout.path(root, layout.LOOP_LOCK))
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
