"""Starting programs by `posix_spawn`: one that outlives us, or one on our own streams; and going on as another program.

`posix_spawn` clears the mask of blocked signals, which `subprocess` passes on: the host of a sandbox blocks most
of them. Children that we wait for are `processes.process`'s.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, NoReturn

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.processes.limits import pass_on
from rookery.processes.proctable import Identity, identity_of

# `posix_spawn` changes neither the folder nor the umask; the arguments stay apart from the text that the shell reads.
_IN_FOLDER = ("/bin/sh", "-c", 'test -z "$1" || umask "$1"; cd -- "$2" && shift 2 && exec "$@"', "sh")

# Python ignores SIGPIPE, and a shell lets what it starts in the background ignore SIGINT and SIGQUIT: a child that
# inherited that could not be interrupted. Hang-up, interrupt, quit, pipe, alarm, terminate, by their POSIX numbers.
_DEFAULT_SIGNALS = (1, 2, 3, 13, 14, 15)

_OF_AGENTS = ("ROOKERY_TOKEN", "ROOKERY_TURN", "ROOKERY_SESSION")

_started: list[int] = []
_collecting = Lock()
"""The kernel reuses the number of a collected child, so one thread at a time collects and forgets."""


def start_detached(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output: str, keep: Sequence[int] = ()
) -> Identity:
    """Start a program in a session of its own, with no input; its output is appended to the file `output`.

    It has the umask and the limits of the call that we serve. `env` is its whole environment. Leave out what marks the
    caller: a child that carries an agent's mark ends with that agent. `keep` are open files beyond the standard streams
    that it gets under the same numbers: a lock that one of them holds is then the child's.
    """
    calls.check_may_start(" ".join(argv))
    collect_ended()
    _keep_files_from_children()
    folder, call = calls.absolute(cwd), calls.current()
    if not os.path.isdir(folder):
        raise ProgramFailed(f"the folder {folder} is gone")
    program = find_program(argv[0], folder, env)
    umask = "" if call is None else f"{call.umask:04o}"
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, calls.absolute(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = _spawn(argv[0], [*_IN_FOLDER, umask, folder, program, *argv[1:]], env, actions, keep, setsid=True)
    with _collecting:
        _started.append(pid)
    _give_limits(pid)
    return identity_of(pid)


def spawn(argv: Sequence[str], *, env: Mapping[str, str], keep: Sequence[int] = ()) -> int:
    """Start a program in our folder, on our streams, and return its number; `keep` as for `start_detached`.

    The caller collects it with `exit_status`.
    """
    program = find_program(argv[0], calls.current_folder(), env)
    return _spawn(argv[0], [program, *argv[1:]], env, [], keep)


def _spawn(
    name: str,
    command: list[str],
    env: Mapping[str, str],
    actions: list[Any],
    keep: Sequence[int],
    *,
    setsid: bool = False,
) -> int:
    # Onto itself: it stays open in this child, and in none that another thread starts at the same time.
    actions = [*actions, *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep)]
    try:
        return os.posix_spawn(
            command[0],
            command,
            dict(env),
            file_actions=actions,
            setsid=setsid,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except OSError as error:
        raise ProgramFailed(f"cannot start {name}: {error.strerror}", code="program_missing") from error


def exit_status(pid: int) -> int | None:
    """The exit status of a child (128 and the number of the signal that ended it); None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    return None if not ended else code if code >= 0 else 128 - code


def has_ended(pid: int) -> bool:
    """True if a child has ended; it is collected, so that no zombie stays."""
    try:
        return exit_status(pid) is not None
    except ChildProcessError:
        return True


def collect_ended() -> None:
    """Collect detached children that have ended."""
    with _collecting:
        _started[:] = [pid for pid in _started if not has_ended(pid)]


def _give_limits(pid: int) -> None:
    """Give a child that was started for a person's call the limits of the person's shell.

    An agent's limits are its own: the child may be another agent's runner.
    """
    call = calls.current()
    if call is not None and call.session_id is None and not any(name in call.environ for name in _OF_AGENTS):
        pass_on(call.pid, pid)


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
    """The program's path; without a slash it is searched in PATH, as a shell does."""
    folders = [os.path.join(folder, entry) for entry in env.get("PATH", os.defpath).split(os.pathsep)]
    path = shutil.which(os.path.join(folder, name) if "/" in name else name, path=os.pathsep.join(folders))
    if path is None:
        hint = f"install {name}, or add it to PATH"
        raise ProgramFailed(f"{name} is not installed", hint=hint, code="program_missing")
    return path


def _keep_files_from_children() -> None:
    """Our starter may have left files open in us, and waits until all who have them close them: no child gets them."""
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            if int(name) > 2:
                with suppress(OSError):  # the one that the folder was read through
                    os.set_inheritable(int(name), False)


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
