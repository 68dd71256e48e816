"""Starting a program that outlives us, or one on our own streams; copies of ourselves; going on as another program.

What runs on our streams is started by `posix_spawn`, which clears the mask of blocked signals: the host of a sandbox
blocks most of them. Children that we wait for are `processes.process`'s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NoReturn

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed
from rookery.processes.limits import pass_on
from rookery.processes.process import start_process
from rookery.processes.proctable import Identity, identity_of

# Python ignores SIGPIPE, and a shell lets what it starts in the background ignore SIGINT and SIGQUIT: a child that
# inherited that could not be interrupted. Hang-up, interrupt, quit, pipe, alarm, terminate, by their POSIX numbers.
_DEFAULT_SIGNALS = (1, 2, 3, 13, 14, 15)

_OF_AGENTS = ("ROOKERY_TOKEN", "ROOKERY_TURN", "ROOKERY_SESSION")

_started: list[subprocess.Popen[bytes]] = []
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
    collect_ended()
    try:
        log = os.open(calls.absolute(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing") from error
    try:
        child = start_process(argv, cwd, env, None, stdout=log, stderr=log, keep=keep)
    finally:
        os.close(log)
    with _collecting:
        _started.append(child)
    _give_limits(child.pid)
    return identity_of(child.pid)


def spawn(argv: Sequence[str], *, env: Mapping[str, str], keep: Sequence[int] = (), ignored: Sequence[int] = ()) -> int:
    """Start a program in our folder, on our streams, and return its number; `keep` as for `start_detached`.

    It ignores those of the signals in `ignored` that we ignore. The caller collects it with `exit_status`.
    """
    program = find_program(argv[0], calls.current_folder(), env)
    # Onto itself: it stays open in this child, and in none that another thread starts at the same time.
    actions = [(os.POSIX_SPAWN_DUP2, file, file) for file in keep]
    command = [program, *argv[1:]]
    default = [number for number in _DEFAULT_SIGNALS if number not in ignored]
    try:
        return os.posix_spawn(program, command, dict(env), file_actions=actions, setsigmask=(), setsigdef=default)
    except OSError as error:
        raise ProgramFailed(f"cannot start {argv[0]}: {error.strerror}", code="program_missing") from error


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
        _started[:] = [child for child in _started if child.poll() is None]


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
