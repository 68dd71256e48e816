"""Start a child that outlives us: a session of its own, none of our streams, and nothing to wait for.

Sending mail does this for an agent that waits, at every message. So this module starts quickly (it does without
`subprocess`) and returns as soon as the child exists.

A child that is started for a call (`base.call`) has that call's umask and limits. Its environment is always given.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.processes import proctable
from rookery.processes.limits import pass_on
from rookery.processes.proctable import Identity

# `posix_spawn` changes neither the folder nor the umask; the arguments stay apart from the text that the shell reads.
_IN_FOLDER = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh")
_WITH_UMASK = ("/bin/sh", "-c", 'umask "$1" && cd -- "$2" && shift 2 && exec "$@"', "sh")

# Python ignores SIGPIPE, and a shell lets what it starts in the background ignore SIGINT and SIGQUIT: a child that
# inherited that could not be interrupted. Hang-up, interrupt, quit, pipe, alarm, terminate, by their POSIX numbers.
DEFAULT_SIGNALS = (1, 2, 3, 13, 14, 15)

_OF_AGENTS = ("ROOKERY_TOKEN", "ROOKERY_TURN", "ROOKERY_SESSION")

_started: list[int] = []
_collecting = allocate_lock()
"""A number that was collected may be given to another thread's child, so one thread at a time collects and forgets."""


def start_detached(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output: str, keep: Sequence[int] = ()
) -> Identity:
    """Start a program in a session of its own, with no input; what it says is added to the file `output`.

    `env` is its whole environment. Leave out what marks the caller: a child that carries an
    agent's mark ends with that agent. `keep` are open files beyond the standard streams that it has by the same
    numbers: a lock that is held through one of them is then its own.
    """
    calls.check_may_start(" ".join(argv))
    _collect()
    folder = calls.absolute(cwd)
    if not os.path.isdir(folder):
        raise ProgramFailed(f"the folder {folder} is gone")
    program = find_program(argv[0], folder, env)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, calls.absolute(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable() if fd not in keep),
        # Onto itself: it stays open in this child, and in none that another thread starts at the same moment.
        *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep),
    ]
    command = in_folder(folder, [program, *argv[1:]])
    try:
        pid = os.posix_spawn(
            command[0], command, dict(env), file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULT_SIGNALS
        )
    except OSError as error:
        raise ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing") from error
    with _collecting:
        _started.append(pid)
    _give_limits(pid)
    row = proctable.read_one(pid)
    return Identity(pid, "") if row is None else row.identity


def _give_limits(pid: int) -> None:
    """Give a child that was started for a person's call the limits of the person's shell.

    An agent's are its own: what it starts may be another agent's runner.
    """
    call = calls.current()
    if call is not None and call.session_id is None and not any(name in call.environ for name in _OF_AGENTS):
        with suppress(OSError, ValueError):  # one of the two has gone
            pass_on(call.pid, pid)


def in_folder(folder: str, argv: Sequence[str]) -> list[str]:
    """The command that runs a program in the folder, with the umask of the call that we serve, if we serve one."""
    call = calls.current()
    if call is None:
        return [*_IN_FOLDER, folder, *argv]
    return [*_WITH_UMASK, f"{call.umask:04o}", folder, *argv]


def become(argv: Sequence[str], env: Mapping[str, str] | None = None) -> NoReturn:
    """Let the caller's process go on as another program, in the same terminal; `env` instead of its environment."""
    call = calls.current()
    if call is not None:
        if call.become is None:
            raise ProgramFailed(f"{argv[0]} needs a terminal, and this call has none")
        call.become(argv)
    if env is None:
        os.execvp(argv[0], list(argv))  # noqa: S606
    os.execvpe(argv[0], list(argv), dict(env))  # noqa: S606


def find_program(name: str, folder: str, env: Mapping[str, str]) -> str:
    """The program's path; without a slash it is looked for in PATH, as a shell would."""
    if "/" in name:
        places = [os.path.join(folder, name)]
    else:
        places = [os.path.join(folder, each, name) for each in env.get("PATH", os.defpath).split(os.pathsep)]
    for path in places:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise ProgramFailed(f"{name} is not installed", hint=f"install {name}, or add it to PATH", code="program_missing")


def _inheritable() -> list[int]:
    """Open files beyond the standard streams that a child would get: whoever gave them to us waits for their end."""
    most = os.sysconf("SC_OPEN_MAX")
    found = []
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        return []
    for name in names:
        try:
            if int(name) <= 2 or not os.get_inheritable(int(name)):
                continue
            if int(name) < most:
                found.append(int(name))
            else:  # opened before the limit was lowered: `posix_spawn` refuses such a number
                os.set_inheritable(int(name), False)
        except OSError:
            continue  # the one that the folder was read through
    return found


def _collect() -> None:
    """Take note of earlier children that have ended, so that a starter that lives long is not left with zombies."""
    with _collecting:
        _started[:] = [pid for pid in _started if not _has_ended(pid)]


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
