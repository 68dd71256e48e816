"""A child that we read from, and perhaps write to, while it runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.processes.process import CHUNK, encode, kill_group, last_lines, open_pidfd, start_process
from rookery.processes.proctable import identity_of
from rookery.processes.proctree import Mark, end_tree

_LOOK_AGAIN = 0.1
_LAST_BYTES = 4000
_LONGEST_LINE = 64 * 1024 * 1024
"""A program that prints no line end must not fill the memory."""


def start(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    talks: bool = False,
) -> Child:
    """Start a program in a session of its own. It reads `stdin`, or, with `talks`, what is sent to it later."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - the child closes it
    process: subprocess.Popen[bytes] | None = None
    try:
        with calls.interrupts_held():
            process = start_process(argv, cwd, env, subprocess.PIPE if talks else encode(stdin), stderr=errors)
        return Child(argv[0], process, errors)
    except BaseException:
        if process is not None:
            kill_group(process)
            process.wait()
        errors.close()
        raise


class Child:
    """A running program. Close it when done; that ends nothing, and only lets go of it.

    If the call that we serve is interrupted while we wait for the program, its process group is killed.
    """

    def __init__(self, program: str, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._program = program
        self._output = process.stdout
        self._input = process.stdin
        self._errors = errors
        self._rest = b""
        self._deadline: float | None = None
        self._ending = open_pidfd(process.pid)
        self.identity = identity_of(process.pid)

    def lines(self, timeout: float | None = None) -> Iterator[str]:
        """Its output, line by line, until it ends; raises ProgramFailed when that takes longer than `timeout`.

        The end of the program is the end, even if something that it left behind still holds the pipe.
        """
        self._deadline = None if timeout is None else time.monotonic() + timeout
        while chunk := self._read():
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            self._rest = self._rest[-_LONGEST_LINE:]
            for line in whole:
                yield line.decode("utf-8", "replace")
            if self._is_late() and self._process.poll() is None:
                raise self._timed_out()  # also if it prints all the time
        if self._rest:
            last, self._rest = self._rest, b""
            yield last.decode("utf-8", "replace")

    def hasten(self, seconds: float) -> None:
        """From now on `lines` waits only so long for the end."""
        end = time.monotonic() + seconds
        self._deadline = end if self._deadline is None else min(self._deadline, end)

    def chunks(self, silence: Callable[[], float]) -> Iterator[bytes]:
        """Its output as it comes, until it ends; nothing (`b""`) after so many seconds of silence.

        The caller keeps the time, and what it has read: a program that prints no line end fills no memory here.
        """
        while True:
            self._deadline = time.monotonic() + max(0.0, silence())
            try:
                chunk = self._read()
            except ProgramFailed:
                yield b""
                continue
            if not chunk:
                return
            yield chunk

    def _read(self) -> bytes:
        if self._output is None:
            return b""
        pipe = self._output.fileno()
        while True:
            stopped = self._check_interrupted()
            if self._deadline is not None:
                self._deadline += stopped
            has_ended = self._process.poll() is not None
            if pipe in self._wait(0 if has_ended else _left(self._deadline), pipe):
                return os.read(pipe, CHUNK)
            if has_ended:
                return b""
            if self._is_late():
                raise self._timed_out()

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _timed_out(self) -> ProgramFailed:
        return ProgramFailed(f"{self._program} did not end in time", code="program_timeout")

    def _wait(self, timeout: float | None, *files: int) -> set[int]:
        """Wait for files or for the program's end; where the system cannot tell of the end, look again soon."""
        with self._ended_by_interrupt():
            if self._ending is not None:
                return calls.wait((*files, self._ending), timeout)
            return calls.wait(files, _LOOK_AGAIN if timeout is None else min(timeout, _LOOK_AGAIN))

    def _check_interrupted(self) -> float:
        """The seconds for which we were stopped."""
        with self._ended_by_interrupt():
            return calls.check_interrupted()

    @contextmanager
    def _ended_by_interrupt(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            if self._process.poll() is None:
                kill_group(self._process)
                self._process.wait()
            raise

    def send(self, text: str) -> None:
        """Write to it; raises ProgramFailed if it no longer listens."""
        if self._input is None or self._input.closed:
            raise ProgramFailed(f"nothing more can be sent to {self._program}")
        try:
            self._input.write(text.encode("utf-8", "surrogateescape"))
            self._input.flush()
        except BrokenPipeError as error:
            raise ProgramFailed(f"{self._program} has ended: {self.last_output}") from error

    def close_input(self) -> None:
        """Tell it that nothing more will be sent."""
        if self._input is not None:
            try:
                self._input.close()
            except BrokenPipeError:
                return

    def wait(self, timeout: float) -> int | None:
        """Its exit status (minus the number of the signal that ended it), or None if it still runs."""
        deadline = time.monotonic() + timeout
        while (status := self._process.poll()) is None:
            deadline += self._check_interrupted()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._wait(left)
        return status

    @property
    def last_output(self) -> str:
        """The end of its error output."""
        size = os.fstat(self._errors.fileno()).st_size
        end = os.pread(self._errors.fileno(), _LAST_BYTES, max(0, size - _LAST_BYTES))
        return last_lines(end.decode("utf-8", "replace"))

    def close(self) -> None:
        """Let go of its streams, and collect it if it has ended."""
        self.close_input()
        if self._output is not None:
            self._output.close()
        if self._ending is not None:
            os.close(self._ending)
            self._ending = None
        self._errors.close()
        self._process.poll()


@contextmanager
def ended_with_block(child: Child, mark: Mark) -> Iterator[Child]:
    """End a child when the block ends, with what it left in the background, wherever that went with its mark."""
    try:
        yield child
    finally:
        end_tree(child.identity, mark, 0)
        child.close()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
