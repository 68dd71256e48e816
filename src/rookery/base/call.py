"""The call that a thread serves: what a program that runs by itself has from its process.

In the daemon many calls run at once, each in a thread of its own, and none of them may use what belongs to the whole
process: its environment, folder, umask, streams and signals. They use those of their call. Elsewhere a process serves
itself: there is no call, and everything is the process's own.

A call is interrupted by Ctrl-C in the caller's terminal, or because its caller is gone. That raises KeyboardInterrupt
at the next step, wait or query, as a signal would in a process, so that everything is cleaned up in the same way.
A call that has a process to itself can be stopped as well, by Ctrl-Z: it waits at the next such place.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock, current_thread, local, main_thread
from types import FrameType
from typing import Any, NoReturn, TextIO

SLICE = 0.2
"""How long, in seconds, we wait for another thread before we look whether our call was interrupted."""
_LOCK_PAUSE = 0.01
_DAY = 86_400.0


def _no_streams() -> tuple[TextIO, TextIO, TextIO]:
    return io.StringIO(), io.StringIO(), io.StringIO()


@dataclass(kw_only=True, eq=False)
class Call:
    """One call of `rook`, or of a hook, with everything that it may know of the calling process."""

    environ: Mapping[str, str]
    cwd: str
    umask: int
    pid: int
    """The process that calls, as the kernel names it."""
    streams: tuple[TextIO, TextIO, TextIO] = field(default_factory=_no_streams)
    size: Callable[[], tuple[int, int]] = lambda: (80, 24)
    """Columns and lines of the caller's terminal."""
    become: Callable[[Sequence[str]], NoReturn] | None = None
    """Lets the caller's process go on as another program, in its own terminal."""
    session_id: str | None = None
    """The session of the sandboxed agent whose socket the call came through; None at the project's own socket."""
    is_caller_alive: Callable[[], bool] = lambda: True
    """True if the calling process has not ended; also where the system does not tell."""
    connections: Any = None
    """The `db.pool.Pool` of a daemon that keeps connections for the next call."""
    is_writing: bool = False
    """It holds the database's write lock, and must not be stopped with it."""

    def __post_init__(self) -> None:
        self.id = os.urandom(8).hex()
        """Unique among all calls on all hosts."""
        self.stdin, self.stdout, self.stderr = self.streams
        self._interrupts: list[None] = []
        self._is_stopped = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Wakes whatever waits in this call."""
        self._ringing = Lock()

    def interrupt(self) -> None:
        """Let the call raise KeyboardInterrupt where it next looks; each interrupt is raised once."""
        self._interrupts.append(None)
        self.wake()

    def stop(self) -> None:
        """Let the call wait where it next looks, until `go_on`, or an interrupt."""
        self._is_stopped = True
        self.wake()

    def go_on(self) -> None:
        """Let a call go on that was stopped."""
        self._is_stopped = False
        self.wake()

    def wake(self) -> None:
        """Let whatever waits in this call look again. May be called from any thread."""
        with self._ringing:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def wait(self, files: Collection[int] = (), seconds: float | None = None) -> set[int]:
        """Wait until one of the open files can be read, and return those that can; nothing when the time is up.

        An interrupt raises KeyboardInterrupt. It may return early, with nothing, when the call is stopped or woken.
        """
        ready = _wait((*files, self._bell), seconds)
        if self._bell in ready:
            ready.remove(self._bell)
            os.eventfd_read(self._bell)
        self.check()
        return ready

    def close(self) -> None:
        """No thread serves it any more, and nothing wakes it."""
        with self._ringing:
            if self._bell >= 0:
                os.close(self._bell)
                self._bell = -1

    def wait_while_stopped(self) -> float:
        """Wait until the call may go on, and return the seconds. A call that writes goes on until others can write."""
        if not self._is_stopped:
            return 0.0
        begun = time.monotonic()
        while self._is_stopped and not self.is_writing:
            self.wait()
        return time.monotonic() - begun

    def check(self) -> None:
        """Raise KeyboardInterrupt if the call was interrupted since the last look.

        A signal's handler may call this in the middle of anything, so it takes no lock: one of several threads pops it.
        """
        try:
            self._interrupts.pop()
        except IndexError:
            return
        raise KeyboardInterrupt


_served = local()
_ids: set[str] = set()
"""The calls that threads of this process serve."""


def current() -> Call | None:
    """The call that this thread serves; None in a process that serves itself."""
    return getattr(_served, "call", None)


@contextmanager
def serving(call: Call) -> Iterator[Call]:
    """Serve the call in this thread, and no other; it is over then."""
    before = current()
    _ids.add(call.id)
    _served.call = call
    try:
        yield call
    finally:
        _served.call = before
        _ids.discard(call.id)
        call.close()


def is_served(call_id: str) -> bool:
    """True while a thread of this process serves the call of that id."""
    return call_id in _ids


def check_interrupted() -> float:
    """Raise KeyboardInterrupt if this thread's call was interrupted; wait while it is stopped, return the seconds."""
    call = current()
    if call is None:
        return 0.0
    call.check()
    return call.wait_while_stopped()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let a signal that interrupts this process wait for the end of the block, which is short.

    In threads that no signal interrupts, nothing has to wait.
    """
    handler = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    if not callable(handler):  # ignored, or it ends the process
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])


def note_writing(is_writing: bool) -> None:
    """Say that this thread's call holds the database's write lock, or no longer does."""
    call = current()
    if call is not None:
        call.is_writing = is_writing


@contextmanager
def counted_writing() -> Iterator[None]:
    """Let `is_writing` see that a transaction of this thread holds a write lock, within the block. Only for tests."""
    _served.writing = getattr(_served, "writing", 0) + 1
    try:
        yield
    finally:
        _served.writing -= 1


def is_writing() -> bool:
    """True if a transaction of this thread holds a write lock; always False where no test asks."""
    return getattr(_served, "writing", 0) > 0


def check_may_start(program: str) -> None:
    """Raise if this thread holds the write lock, and so may start no child: that is a bug of ours."""
    if is_writing():
        raise RuntimeError(f"{program} was started inside a write transaction")


def sleep(seconds: float) -> None:
    """Wait; an interrupt ends it. A call that is stopped meanwhile does not go on before it may."""
    deadline = time.monotonic() + seconds
    while True:
        check_interrupted()
        left = deadline - time.monotonic()
        if left <= 0:
            return
        wait((), left)


def wait(files: Collection[int] = (), seconds: float | None = None) -> set[int]:
    """Wait until one of the open files can be read, and return those that can; nothing when the time is up.

    An interrupt of the call ends it. It may return early, with nothing, when the call is stopped.
    """
    call = current()
    return _wait(files, seconds) if call is None else call.wait(files, seconds)


def _wait(files: Collection[int], seconds: float | None) -> set[int]:
    watch = select.poll()  # `select` knows no file beyond the 1024th
    for file in files:
        watch.register(file, select.POLLIN)
    # The system takes no number of milliseconds beyond 31 bits; a caller that waits longer calls again.
    return {number for number, _ in watch.poll(None if seconds is None else min(max(0.0, seconds), _DAY) * 1000)}


def lock(handle: int | TextIO) -> None:
    """Take the lock of an open file, as `flock` does; an interrupt ends the waiting."""
    if current() is None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_LOCK_PAUSE)
        else:
            return


def current_folder() -> str:
    """The caller's folder; raises FileNotFoundError if it is gone."""
    call = current()
    return os.getcwd() if call is None else call.cwd


def current_umask() -> int:
    """The caller's umask."""
    call = current()
    if call is not None:
        return call.umask
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def ask(question: str) -> str:
    """The line that the caller answers; raises EOFError if there is none."""
    output = stdout()
    output.write(question)
    output.flush()
    with suppress(OSError):
        if line := stdin().readline():
            return line.rstrip("\n")
    raise EOFError


def confirm(question: str) -> bool:
    """Whether the caller answers yes; no is the default."""
    try:
        return ask(f"{question} [y/N]: ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def absolute(path: str) -> str:
    """The path, seen from the caller's folder."""
    return os.path.abspath(path if os.path.isabs(path) else os.path.join(current_folder(), path))


def stdin() -> TextIO:
    """The caller's standard input; reading raises OSError if it is closed."""
    call = current()
    return _or_closed(sys.stdin) if call is None else call.stdin


def stdout() -> TextIO:
    """The caller's standard output; writing raises OSError if it is closed."""
    call = current()
    return _or_closed(sys.stdout) if call is None else call.stdout


def stderr() -> TextIO:
    """The caller's error output; if it is closed, what is written is lost."""
    call = current()
    return _or_closed(sys.stderr, is_lost=True) if call is None else call.stderr


def _or_closed(stream: TextIO | None, *, is_lost: bool = False) -> TextIO:
    return _Closed(is_lost=is_lost) if stream is None else stream  # type: ignore[return-value]


class ClosedStream(OSError):
    """A standard stream was closed before the process began."""

    def __init__(self) -> None:
        super().__init__(errno.EBADF, os.strerror(errno.EBADF))


class _Closed(io.TextIOBase):
    """A stream that was closed before the process began: Python has None in its place."""

    encoding = "utf-8"

    def __init__(self, *, is_lost: bool) -> None:
        self._is_lost = is_lost

    @property
    def buffer(self) -> _Closed:
        return self

    def read(self, _most: int | None = -1, /) -> NoReturn:
        raise ClosedStream

    readline = read

    def write(self, data: Any, /) -> int:
        if self._is_lost:
            return len(data)
        raise ClosedStream
