"""The one place that starts a child: argument lists, a deadline, a process group, and its last words in the error.

`run` waits for its end, `start` gives one that is read while it runs; one that outlives us is `base.detach`'s.

A child that is started for a call (`base.call`) has that call's environment, folder and umask, and ends if the call is
interrupted while we wait for it. Without a call it has ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO, Any, AnyStr

    from rookery.base.child import Child

_LAST_LINES = 12


class Finished(Record):
    """How a child ended and what it said."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """True if it exited with 0."""
        return self.status == 0

    @property
    def last_words(self) -> str:
        """The end of what it said, error output first: what a person needs to see why it failed."""
        said = self.stderr.strip() or self.stdout.strip()
        return "\n".join(said.splitlines()[-_LAST_LINES:])


def run(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = True,
) -> Finished:
    """Run a program to its end. Not there, too slow or (with `check`) a status other than 0 raises ProgramFailed."""
    status, out, err = _run(argv, cwd, env, stdin, timeout, encoding="utf-8", errors="surrogateescape")
    finished = Finished(tuple(argv), status, out, err)
    if check and not finished.ok:
        raise ProgramFailed(f"`{_shown(argv)}` exited with {finished.status}: {finished.last_words}")
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
    status, out, err = _run(argv, cwd, env, stdin, timeout)
    if status != 0:
        said = err.decode("utf-8", "replace").strip()
        raise ProgramFailed(f"`{_shown(argv)}` exited with {status}: {said}")
    return out


def start(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    talks: bool = False,
) -> Child:
    """Start a program in a session of its own. It reads `stdin`, or, with `talks`, what is sent to it later."""
    from rookery.base.child import Child

    given: IO[bytes] | int = subprocess.PIPE if talks else subprocess.DEVNULL
    if stdin is not None:
        # A file, because a pipe that is full while the child waits for us to read would hold both for ever.
        given = _temporary_file(stdin.encode("utf-8", "surrogateescape"))
    errors = _temporary_file()
    try:
        child = _spawn(argv, cwd, env, stdin=given, stdout=subprocess.PIPE, stderr=errors)
    except ProgramFailed:
        errors.close()
        raise
    finally:
        if not isinstance(given, int):
            given.close()
    return Child(argv[0], child, errors)


def _run(
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: AnyStr | None,
    timeout: float,
    **text: str,
) -> tuple[int, AnyStr, AnyStr]:
    """Run a program to its end: its status, its output and its error output."""
    given: IO[bytes] | int = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    if stdin is not None and calls.current() is not None:
        # A file, because `communicate` goes on reading when it is called again, but not writing.
        given = _temporary_file(stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogateescape"))
        stdin = None
    try:
        child = _spawn(argv, cwd, env, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **text)
    finally:
        if not isinstance(given, int):
            given.close()
    out, err = _communicate(argv, child, stdin, timeout)
    return child.returncode, out, err


def _temporary_file(content: bytes = b"") -> IO[bytes]:
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115 - the child and its reader keep it
    file.write(content)
    file.seek(0)
    return file


def _cannot_start(argv: Sequence[str], cwd: str | None, error: OSError) -> ProgramFailed:
    """Why a program could not be started."""
    if not isinstance(error, FileNotFoundError):
        return ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing")
    if cwd is not None and not os.path.isdir(cwd):
        return ProgramFailed(f"the folder {cwd} is gone")
    hint = f"install {argv[0]}, or add it to PATH"
    return ProgramFailed(f"{argv[0]} is not installed", hint=hint, code="program_missing")


def _spawn(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, **streams: Any
) -> subprocess.Popen[Any]:
    calls.check_may_start(" ".join(argv))
    call = calls.current()
    if call is None:
        _pass_no_ignored_interrupt_on()
    else:
        cwd = calls.absolute(cwd or "")
        env = call.environ if env is None else env
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            umask=-1 if call is None else call.umask,
            start_new_session=True,
            **streams,
        )
    except OSError as error:
        raise _cannot_start(argv, cwd, error) from error


def _pass_no_ignored_interrupt_on() -> None:
    """Go on ignoring interrupts if we were started so, but not by a disposition that children inherit.

    A shell lets what it starts in the background ignore SIGINT and SIGQUIT. Children have sessions of their own, so
    what is typed at the terminal does not reach them, and what they run (a gate, a test suite) may rely on signals.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            with suppress(ValueError):  # in another thread than the main one it cannot be changed
                signal.signal(number, _ignore)


def _ignore(_number: int, _frame: object) -> None:
    pass


def _communicate(
    argv: Sequence[str], child: subprocess.Popen[AnyStr], stdin: AnyStr | None, timeout: float
) -> tuple[AnyStr, AnyStr]:
    """All that the child says; it is ended with its group where it takes too long or we are interrupted."""
    try:
        if calls.current() is None:
            return child.communicate(stdin, timeout=timeout)
        return _communicate_for_call(child, timeout)
    except subprocess.TimeoutExpired as error:
        _end_group(child)
        raise ProgramFailed(f"`{_shown(argv)}` did not end within {timeout:g} s", code="program_timeout") from error
    except BaseException:
        _end_group(child)
        raise


def _communicate_for_call(child: subprocess.Popen[AnyStr], timeout: float) -> tuple[AnyStr, AnyStr]:
    """The same in short slices: no signal wakes a thread, so it looks for an interrupt before each of them."""
    deadline = time.monotonic() + timeout
    while True:
        deadline += calls.check_interrupted()
        left = deadline - time.monotonic()
        try:
            return child.communicate(timeout=calls.sliced(max(0.0, left)))
        except subprocess.TimeoutExpired:
            if left <= calls.SLICE:
                raise


def _end_group(child: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Kill the child with everything that it started in its group, and collect it."""
    kill_group(child)
    child.communicate()


def kill_group(child: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Kill the child with everything that it started in its group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 120 else text[:119] + "…"
