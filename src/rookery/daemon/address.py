"""Where a project's daemon listens: its lock file, which names everything else, and its socket.

The process that holds the lock of `.rookery/run/daemon.lock` is the daemon. The file's first line is the file's own
device and inode, and the path of the socket; the second says who wrote it, for people and for `rook daemon status`. A
copy of the file, in a copy of the project, names a daemon that is not the copy's.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from rookery.base.errors import Refused
from rookery.config import layout
from rookery.config.project import make_state_folder
from rookery.daemon import forkserver
from rookery.processes import holder as holders
from rookery.processes import locks, proctable
from rookery.processes.proctable import Identity
from rookery.processes.proctree import identify, is_alive
from rookery.terminal.tmux import private_folder

_LONGEST_SOCKET = 103
_MOST_BYTES = 4096
_TRIES = 20
_PAUSE = 0.01
_BIND_SECONDS = 60.0
_EMPTY_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Address:
    """What the lock file says of the daemon that wrote it."""

    socket: str
    pid: int
    holder: str
    """Its start, host, boot and pid namespace, as `processes.holder` writes them."""
    version: str
    since: str

    @property
    def process(self) -> Identity | None:
        """The daemon's process; None where that cannot be seen from here: on another host, or in a container."""
        return holders.process_of(holders.read(self.pid, self.holder))


def lock_path(root: str) -> str:
    """The file whose lock makes a process the daemon."""
    return layout.path(root, layout.DAEMON_LOCK)


def log_path(root: str) -> str:
    """The daemon's own log."""
    return layout.path(root, layout.DAEMON_LOG)


def socket_path(root: str, runtime_folder: str | None) -> str:
    """Where the daemon listens: beside the lock, or, where that path is too long for a socket, in a private folder."""
    path = layout.path(root, layout.DAEMON_SOCKET)
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        return path
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:20]
    folders = [os.path.join(runtime_folder, "rookery")] if runtime_folder and os.path.isabs(runtime_folder) else []
    for folder in (*folders, shared_folder()):
        path = os.path.join(folder, f"{digest}.sock")
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            with suppress(OSError):  # no folder for this user, who has logged out; what another prepared is refused
                private_folder(folder)
                return path
    raise Refused(f"no path for a socket is short enough (the root is {root})", hint="set XDG_RUNTIME_DIR")


def shared_folder() -> str:
    """The folder of this user's sockets whose path beside the lock would be too long."""
    return f"/tmp/rookery-{os.getuid()}"  # noqa: S108 - `private_folder` checks it


def sweep(folder: str, clock: float) -> None:
    """Remove what killed processes have left: sockets at which none listens, and folders that have long been empty."""
    with suppress(OSError), os.scandir(folder) as entries:
        if os.path.islink(folder) or os.stat(folder).st_uid != os.geteuid():
            return
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                age = clock - status.st_mtime
                if stat.S_ISSOCK(status.st_mode) and age > _BIND_SECONDS and not _is_served(entry.path):
                    os.unlink(entry.path)
                elif entry.name.startswith("sandbox-") and age > _EMPTY_SECONDS:
                    os.rmdir(entry.path)


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        try:
            line.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True


def find_processes(root: str) -> list[Identity]:
    """The processes that are, or were, the project's daemon, whatever the lock file says by now.

    The one that the lock file names may serve an old path: the project was moved under it.
    """
    address = read_address(root)
    named = None if address is None else address.process
    pids = proctable.pids_with(proctable.SERVES, root)
    if named is not None and is_alive(named):
        pids.add(named.pid)
    daemons = (identify(pid) for pid in sorted(pids) if _is_daemon(pid))
    return [daemon for daemon in daemons if daemon is not None]


def _is_daemon(pid: int) -> bool:
    """True if the process was started as a daemon, and is no copy of one."""
    with suppress(OSError):
        words = proctable.arguments_of(pid)
        return forkserver.name_of(pid) not in forkserver.COPIES and any("rookery.daemon.main" in word for word in words)
    return False


def take_lock(root: str) -> int | None:
    """Become the daemon: the open lock file, which must stay open; None if another process is."""
    make_state_folder(os.path.dirname(lock_path(root)))
    file = locks.open_file(lock_path(root))
    for _ in range(_TRIES):  # a process that only looks whether it is locked holds it for a moment, too
        if locks.hold(file):
            os.ftruncate(file, 0)  # what the daemon before us wrote would be taken for ours as soon as we listen
            return file
        time.sleep(_PAUSE)
    os.close(file)
    return None


def is_at(lock: int, root: str) -> bool:
    """True if the open lock file is the one of the project at `root`."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(lock_path(root)))
    except OSError:
        return False


def is_locked(root: str) -> bool:
    """True if a daemon is there, or one is about to leave."""
    return locks.is_locked(lock_path(root))


def write_address(lock: int, address: Address) -> None:
    """Say where the daemon listens, in one write: clients read this without a lock."""
    data = os.fsencode(f"{_identify(lock)} {address.socket}\n{json.dumps(asdict(address))}\n")
    os.pwrite(lock, data, 0)
    os.ftruncate(lock, len(data))


def _identify(file: int) -> str:
    """The open file, as its first line names it; `client.discovery` reads the same."""
    status = os.fstat(file)
    return f"{status.st_dev}:{status.st_ino}"


def read_address(root: str) -> Address | None:
    """What the lock file says; None if no daemon of this project has written it."""
    try:
        with open(lock_path(root), "rb") as file:
            first, _, text = os.fsdecode(file.read(_MOST_BYTES)).partition("\n")
            if first.partition(" ")[0] != _identify(file.fileno()):
                return None
        address = Address(**json.loads(text))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (address.socket, address.holder, address.version, address.since)
    is_sound = all(isinstance(text, str) for text in texts) and isinstance(address.pid, int) and address.pid > 0
    return address if is_sound and "\0" not in address.socket else None


def describe_self(root: str, environ: Mapping[str, str], version: str, since: str) -> Address:
    """The address of this process, as the project's daemon."""
    me = holders.myself()
    return Address(socket_path(root, environ.get("XDG_RUNTIME_DIR")), me.pid, me.text, version, since)
