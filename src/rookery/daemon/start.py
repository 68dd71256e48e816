"""Starting a project's daemon, from any process that needs it: once, in a clean environment, ready on return."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import time
from contextlib import suppress

from rookery.base.errors import ProgramFailed, RookError
from rookery.config import layout
from rookery.config.environ import read_daemon_environ
from rookery.config.project import is_project, make_state_folder
from rookery.daemon import address
from rookery.ops.state_owner import check_state
from rookery.processes import locks
from rookery.processes.proctable import SERVES, Identity, read_file
from rookery.processes.proctree import send
from rookery.processes.python import module_command
from rookery.processes.spawning import has_ended, start_detached

_SECONDS = 10.0
_PAUSE = 0.005
_STUCK_SECONDS = 2.0
_MOST_STARTS = 3


class CannotStart(Exception):
    """There is no daemon, and none can be started."""


class NotServed(CannotStart):
    """This user cannot use the project. The command itself says why."""


def start_daemon(root: bytes | str) -> str:
    """The socket of the project's daemon, which is started if there is none; raises CannotStart."""
    folder = os.fsdecode(root)
    begun = time.monotonic()
    try:
        check_state(folder)
        if not is_project(folder):
            raise NotServed(f"there is no project in {folder}")
        _check_owner(folder)
        for name in (layout.RUN, layout.LOGS):
            make_state_folder(layout.path(folder, name))
        with open(layout.path(folder, layout.DAEMON_START), "ab") as turn:
            _take(turn.fileno())
            path = find_socket(folder)
            return path if path is not None else _start(folder, begun)
    except ProgramFailed as error:
        raise CannotStart(error.message) from error
    except RookError as error:
        raise NotServed(error.message) from error
    except OSError as error:
        raise CannotStart(error.strerror or str(error)) from error


def _check_owner(root: str) -> None:
    """Refuse to serve a project of another user, also as root: what the daemon makes would not be its owner's."""
    owner = os.stat(layout.path(root)).st_uid
    if owner != os.geteuid():
        try:
            name = pwd.getpwuid(owner).pw_name
        except KeyError:
            name = f"'#{owner}'"
        raise CannotStart(f"the project belongs to {name}: use `sudo -u {name} rook …`")


def find_socket(root: str) -> str | None:
    """Where a daemon listens that accepts calls; None if there is none."""
    daemon = address.read_address(root)
    if daemon is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(OSError):
        line.settimeout(_STUCK_SECONDS)
        line.connect(daemon.socket)
        return daemon.socket
    return None


def _start(root: str, begun: float) -> str:
    deadline = time.monotonic() + _SECONDS
    stuck = begun + _STUCK_SECONDS  # the time that we waited for our turn counts: it was the same daemon
    child: Identity | None = None
    is_asked, starts = False, 0
    poke(root)
    while time.monotonic() < deadline:
        if child is None and not address.is_locked(root):
            child = start_detached(
                [*module_command("rookery.daemon.main", alone=True), root],
                cwd=root,
                env=read_daemon_environ() | {SERVES: root},
                output=address.log_path(root),
            )
            starts += 1
        elif child is None and time.monotonic() > stuck:
            raise CannotStart("one is there and does not answer: see `rook daemon status`")
        elif child is None and not is_asked and time.monotonic() > stuck - _STUCK_SECONDS / 2:
            is_asked = True  # no client reaches it where it listens, as one of an older version may
            for process in address.find_processes(root):
                send(process, signal.SIGTERM)
        time.sleep(_PAUSE)
        path = find_socket(root)
        if path is not None:
            return path
        if child is not None and has_ended(child.pid):
            if starts == _MOST_STARTS:
                raise CannotStart(f"it ended at once: see {address.log_path(root)}")
            child = None  # another process may have been first, and gone since
    raise CannotStart(f"it is not ready after {_SECONDS:g} s: see {address.log_path(root)}")


def poke(root: str) -> None:
    """Let a daemon check its socket and its lock file, which something may have removed."""
    for process in address.find_processes(root):
        if _handles(process.pid, signal.SIGUSR1):  # one that is just starting would be ended by it
            send(process, signal.SIGUSR1)


def _handles(pid: int, number: int) -> bool:
    lines = read_file(pid, "status").splitlines()
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) & 1 << (number - 1))


def _take(lock: int) -> None:
    """Wait for our turn: of many processes that find no daemon, one starts it."""
    deadline = time.monotonic() + _SECONDS
    while not locks.hold(lock):
        if time.monotonic() > deadline:
            raise CannotStart("another process has been starting it for very long")
        time.sleep(_PAUSE)
