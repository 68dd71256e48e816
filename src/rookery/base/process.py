"""The one place that starts a child: argument lists, a deadline, a process group, and its last words in the error."""

from __future__ import annotations

import os
import signal
import subprocess

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise ProgramFailed(f"the folder {cwd} is gone", code="program_failed") from error
        raise ProgramFailed(
            f"{argv[0]} is not installed",
            hint=f"install {argv[0]}, or add it to PATH",
            code="program_missing",
        ) from error
    except OSError as error:
        raise ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing") from error
    try:
        out, err = child.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        _end_group(child)
        raise ProgramFailed(f"`{_shown(argv)}` did not end within {timeout:g} s", code="program_timeout") from error
    except BaseException:
        _end_group(child)
        raise
    finished = Finished(tuple(argv), child.returncode, out, err)
    if check and not finished.ok:
        raise ProgramFailed(f"`{_shown(argv)}` exited with {finished.status}: {finished.last_words}")
    return finished


def _end_group(child: subprocess.Popen[str]) -> None:
    """Kill the child with everything that it started in its group, and collect it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()
    child.communicate()


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 120 else text[:119] + "…"
