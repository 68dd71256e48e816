"""Start a child on streams that it is given, and wait for its end beside other things.

For those who stand between a program and whoever started it: nothing is captured, nothing is copied. Like
`base.detach` it does without `subprocess`, which takes longer to load than the child to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.processes.detach import DEFAULT_SIGNALS, find_program, in_folder


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    streams: tuple[int, int, int] = (0, 1, 2),
    keep: Sequence[int] = (),
    own_session: bool = False,
) -> int:
    """Start a program in the caller's folder and return its number; it gets `streams`, and `keep` by their own numbers.

    Whoever calls this collects it with `wait`.
    """
    folder = calls.current_folder()
    program = find_program(argv[0], folder, env)
    command = list(argv)
    if calls.current() is not None:
        command = in_folder(folder, [program, *argv[1:]])
        program = command[0]
    # In two steps, because one of them may stand where another is to go.
    spare = [os.dup(each) for each in streams]
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(spare)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep]  # onto itself: it stays open
    try:
        return os.posix_spawn(
            program,
            command,
            dict(env),
            file_actions=actions,
            setsid=own_session,
            setsigmask=(),
            setsigdef=DEFAULT_SIGNALS,
        )
    except OSError as error:
        raise ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing") from error
    finally:
        for fd in spare:
            os.close(fd)


def wait(pid: int, *, block: bool = True) -> int | None:
    """The child's exit status (128 and the number of the signal that ended it); None while it runs."""
    found, status = os.waitpid(pid, 0 if block else os.WNOHANG)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def fork(run: Callable[[], object]) -> int:
    """Let a copy of this process do something by itself, and return its number. Only for one that has no threads."""
    pid = split()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(0)
    return pid


def split() -> int:
    """Go on as two processes: the copy gets 0, the original the copy's number. Only for one that has no threads."""
    if calls.current() is not None:
        raise RuntimeError("a process with threads cannot fork")
    return os.fork()
