"""Running a program to its end: argument lists, a deadline, a process group, and the end of its output in the error.

`run` waits for its end, `in_background` does something else meanwhile. `child.start` gives one that is read while it
runs, `spawning.start_detached` starts one that outlives us.

A child that is started for a call (`base.call`) has that call's environment, folder and umask, and ends if the call is
interrupted while we wait for it. Without a call it has ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.processes import memory_file

CHUNK = 65536
_LAST_LINES = 12
Watch = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Finished(Record):
    """How a child ended, and its output."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """True if it exited with 0."""
        return self.status == 0

    @property
    def last_output(self) -> str:
        """The end of its output, error output first: what a person needs to see why it failed."""
        return last_lines(self.stderr.strip() or self.stdout)


def last_lines(output: str) -> str:
    """The lines at the end of a program's output that an error quotes."""
    return "\n".join(output.strip().splitlines()[-_LAST_LINES:])


def run(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = True,
    watch: Watch | None = None,
) -> Finished:
    """Run a program to its end. Not there, too slow or (with `check`) a status other than 0 raises ProgramFailed.

    `watch` is called with its error output, as it comes.
    """
    with _Running(argv, cwd, env, encode(stdin)) as child:
        finished = _finish(argv, child, timeout, watch)
    if check and not finished.ok:
        raise ProgramFailed(f"`{_shown(argv)}` exited with {finished.status}: {finished.last_output}")
    return finished


def run_bytes(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> bytes:
    """What a program prints, byte by byte; not there, too slow or a status other than 0 raises ProgramFailed."""
    with _Running(argv, cwd, env, stdin) as child:
        out, err = _read_to_end(argv, child, timeout)
    if child.returncode != 0:
        reason = err.decode("utf-8", "replace").strip()
        raise ProgramFailed(f"`{_shown(argv)}` exited with {child.returncode}: {reason}")
    return out


@contextmanager
def in_background(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> Iterator[Callable[[], Finished]]:
    """Let a program run while the block does something else; the block gets a function that waits for its end.

    It may raise ProgramFailed, as `run` does. A program that was not waited for is ended with the block.
    """
    with _Running(argv, cwd, env, encode(stdin)) as child:
        yield lambda: _finish(argv, child, timeout)


class _Running:
    """A program that does not outlive the block, also if we are interrupted while it is being started.

    A git that went on would move a branch of which we have seen that it did not move. So this is no generator: between
    two of its steps an interrupt would leave the program running.
    """

    def __init__(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, stdin: bytes | None
    ) -> None:
        self._start = partial(start_process, argv, cwd, env, stdin, stderr=subprocess.PIPE)
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> subprocess.Popen[bytes]:
        try:
            with calls.interrupts_held():
                self._child = self._start()
            return self._child  # noqa: TRY300 - an interrupt just behind `try` would leave it running
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_error: object) -> None:
        if self._child is not None and self._child.returncode is None:
            _kill(self._child)


def encode(text: str | None) -> bytes | None:
    """The bytes that a program reads as the text."""
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _finish(
    argv: Sequence[str], child: subprocess.Popen[bytes], timeout: float, watch: Watch | None = None
) -> Finished:
    """Wait for a program's end."""
    out, err = (data.decode("utf-8", "surrogateescape") for data in _read_to_end(argv, child, timeout, watch))
    return Finished(tuple(argv), child.returncode, out, err)


def _cannot_start(argv: Sequence[str], cwd: str | None, error: OSError) -> ProgramFailed:
    """Why a program could not be started."""
    if not isinstance(error, FileNotFoundError):
        return ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing")
    if cwd is not None and not os.path.isdir(cwd):
        return ProgramFailed(f"the folder {cwd} is gone")
    hint = f"install {argv[0]}, or add it to PATH"
    return ProgramFailed(f"{argv[0]} is not installed", hint=hint, code="program_missing")


def start_process(
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bytes | int | None,
    *,
    stdout: int = subprocess.PIPE,
    stderr: IO[bytes] | int,
    keep: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program that reads `stdin`: bytes, a stream as `subprocess` names it, or nothing.

    `keep` are open files beyond the standard streams that it gets under the same numbers.
    """
    calls.check_may_start(" ".join(argv))
    call = calls.current()
    if call is None:
        _let_children_be_interrupted()
    else:
        cwd = calls.absolute(cwd or "")
        env = call.environ if env is None else env
    # A file, because a pipe that is full while the child waits for us to read would block both for ever.
    source = memory_file.write_bytes(stdin) if isinstance(stdin, bytes) else None
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin is None else stdin if isinstance(stdin, int) else source,
            stdout=stdout,
            stderr=stderr,
            pass_fds=keep,
            cwd=cwd,
            env=None if env is None else dict(env),
            umask=-1 if call is None else call.umask,
            start_new_session=True,
        )
    except OSError as error:
        raise _cannot_start(argv, cwd, error) from error
    finally:
        if source is not None:
            os.close(source)


def _let_children_be_interrupted() -> None:
    """If we were started so that we ignore interrupts, go on ignoring them by a handler, which no child inherits.

    A shell lets what it starts in the background ignore SIGINT and SIGQUIT. Children have sessions of their own, so
    what is typed at the terminal does not reach them, and what they run (a gate, a test suite) may rely on signals.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            with suppress(ValueError):  # in another thread than the main one it cannot be changed
                signal.signal(number, lambda _number, _frame: None)


def _read_to_end(
    argv: Sequence[str], child: subprocess.Popen[bytes], timeout: float, watch: Watch | None = None
) -> tuple[bytes, bytes]:
    """Both outputs of a program; raises ProgramFailed if it takes too long."""
    # `Popen.communicate` with a timeout would look for the end every half millisecond, and then ever more rarely.
    ending = open_pidfd(child.pid)
    try:
        outputs = _read_all(child, ending, time.monotonic() + timeout, watch)
        child.wait(None if ending is not None else timeout)
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"`{_shown(argv)}` did not end within {timeout:g} s", code="program_timeout") from error
    finally:
        if ending is not None:
            os.close(ending)
    with child:  # closes its streams
        return outputs


def _kill(child: subprocess.Popen[bytes]) -> None:
    with calls.interrupts_held(), child:  # closes its streams
        kill_group(child)
        child.wait()


def _read_all(
    child: subprocess.Popen[bytes], ending: int | None, deadline: float, watch: Watch | None
) -> tuple[bytes, bytes]:
    """Both outputs, until they are closed and the child has ended."""
    assert child.stdout is not None and child.stderr is not None  # noqa: S101, PT018
    parts: dict[int, list[bytes]] = {child.stdout.fileno(): [], child.stderr.fileno(): []}
    waiting = {*parts} if ending is None else {*parts, ending}
    while waiting:
        deadline += calls.check_interrupted()
        left = deadline - time.monotonic()
        if left <= 0:
            raise subprocess.TimeoutExpired(child.args, left)
        for number in calls.wait(waiting, left):
            chunk = os.read(number, CHUNK) if number != ending else b""
            if chunk:
                parts[number].append(chunk)
                if watch is not None and number == child.stderr.fileno():
                    watch(chunk)
            else:
                waiting.remove(number)
    out, err = (b"".join(chunks) for chunks in parts.values())
    return out, err


def open_pidfd(pid: int) -> int | None:
    """A file that stays with the process, and becomes readable when it ends; None if it is gone, or not on Linux."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not on Linux, or an old kernel
        return None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with everything that it started in its group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 120 else text[:119] + "…"
