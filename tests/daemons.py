"""Daemons in the test's own process, where code that uses the process's globals fails, and processes of real ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rookery.client import frames
from rookery.config.environ import read_daemon_environ
from rookery.daemon import address
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.forkserver import WORKER_NAME, name_of
from rookery.daemon.hello import Guest
from rookery.daemon.server import Daemon
from rookery.processes.proctable import SERVES, Identity, environ_of, read_all

_UMASK = 0o022


class OwnDaemon:
    """A daemon without a socket in the file system, served by a thread of this process."""

    def __init__(self, root: str) -> None:
        self.log: list[str] = []
        self.daemon = Daemon(root, read_daemon_environ(), time.time, self.log.append, Fingerprint())
        self._thread = threading.Thread(target=self.daemon.serve, daemon=True)
        self._thread.start()

    def connect(self, guest: Guest | None = None) -> socket.socket:
        """A connection as a client has one, or an agent in a sandbox."""
        ours, theirs = socket.socketpair()
        self.daemon.adopt(theirs, guest)
        return ours

    def run(
        self, words: list[str], folder: Path, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes] | None:
        """Run a command as a client does; None if the daemon leaves it to a process."""
        with self.connect() as line:
            line.settimeout(timeout)
            line.sendall(hello(frames.RUN, words, folder, env))
            return _converse(line, stdin)

    def run_as(self, guest: Guest, words: list[str], message: bytes | None = None) -> tuple[int, bytes, bytes]:
        """Run a command from within a sandbox, or with a message fire a hook; the caller's environment says nothing."""
        with self.connect(guest) as line:
            line.settimeout(60)
            kind = frames.RUN if message is None else frames.HOOK
            line.sendall(hello(kind, words, Path("/"), {"ROOKERY_AGENT": "human"}))
            if message is not None:
                line.sendall(frames.pack(frames.INPUT, message))
            result = _converse(line, b"")
            assert result is not None
            return result

    def close(self) -> None:
        """End it."""
        self.daemon.stop("the test is over")
        self._thread.join(10)
        assert not self._thread.is_alive()
        self.daemon.close()


def run_as_guest(root: str, guest: Guest, *words: str, message: bytes | None = None) -> tuple[int, bytes, bytes]:
    """Run a command as an agent in a sandbox, through a daemon of its own."""
    daemon = OwnDaemon(root)
    try:
        return daemon.run_as(guest, list(words), message)
    finally:
        daemon.close()


def workers_of(folder: Path) -> list[int]:
    """The worker processes that serve a call in the project."""
    pids = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and _is_worker(name) and os.readlink(f"/proc/{name}/cwd").startswith(str(folder)):
                pids.append(int(name))
    return pids


def _is_worker(pid: str) -> bool:
    is_copy = name_of(int(pid)) == WORKER_NAME
    return is_copy or b"rookery.daemon.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()


def loops_of(folder: Path) -> list[int]:
    """The processes that run the project's loop without a daemon."""
    return background_of(folder, b"rookery.flows.loop_start")


def background_of(folder: Path, module: bytes = b"rookery.") -> list[int]:
    """The processes that run a module of ours for the project: its daemon, runners, keeper and loop."""
    pids = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0") if name.isdigit() else []
            if any(module in word for word in words) and os.fsencode(folder) in words and _is_running(name):
                pids.append(int(name))
    return pids


def _is_running(name: str) -> bool:
    return Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def daemons_under(folder: Path) -> list[Identity]:
    """The daemons whose projects lie under the folder, wherever their files are by now."""
    start = f"{SERVES}={folder}{os.sep}"
    daemons = []
    for pid, row in read_all().items():
        with suppress(OSError):
            if any(variable.startswith(start) for variable in environ_of(pid)):
                daemons.append(row.identity)
    return daemons


def has_daemon(root: Path) -> bool:
    """True if a daemon of its own serves the project."""
    return address.is_locked(str(root))


def end_daemon(root: Path) -> None:
    """End the project's daemon, by its number, with its keeper and the runners, which would start another."""
    deadline = time.monotonic() + 20
    while has_daemon(root) or background_of(root):
        assert time.monotonic() < deadline
        for pid in background_of(root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


_DYING = """
import os, sys
from rookery.daemon import loop_thread
original, process = loop_thread.own_environ, os.getpid()
def environ(root):
    return original(root) | ({"ROOKERY_TEST_KILL": sys.argv[2]} if os.getpid() == process else {})
loop_thread.own_environ = environ
from rookery.daemon.main import main
main()
"""


def kill_daemon_at(step: str, root: Path) -> None:
    """Have a daemon of its own whose loop is killed right after a step. What it does after its death is not changed."""
    end_daemon(root)
    env = read_daemon_environ() | {SERVES: str(root)}
    argv = [sys.executable, "-c", _DYING, str(root), step]
    done = subprocess.run(argv, cwd=root, env=env, start_new_session=True, timeout=60, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL, step


def hello(
    kind: bytes,
    words: list[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    terminals: bytes = b"000",
    size: bytes = b"80x24",
    umask: int = _UMASK,
    encoding: bytes = b"utf-8",
) -> bytes:
    """What a client sends first."""
    fields = [frames.PROTOCOL, kind, os.fsencode(folder), b"%o" % umask, terminals, size, encoding, b"%d" % len(words)]
    fields += [os.fsencode(word) for word in words]
    fields += [os.fsencode(f"{name}={value}") for name, value in env.items()]
    return frames.pack(frames.CALL, frames.pack_fields(fields))


def receive(line: socket.socket) -> tuple[bytes, bytes]:
    """The next frame; two times nothing at the end of the connection."""
    head = _read(line, frames.HEAD)
    return head[:1], _read(line, int.from_bytes(head[1:], "big")) if head else b""


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = line.recv(size - len(data))
        if not chunk:
            assert not data
            return b""
        data += chunk
    return data


def _converse(line: socket.socket, stdin: bytes) -> tuple[int, bytes, bytes] | None:
    out, err = b"", b""
    while True:
        kind, payload = receive(line)
        if kind == frames.OUT:
            out += payload
        elif kind == frames.ERR:
            err += payload
        elif kind == frames.WANT:
            line.sendall(frames.pack(frames.INPUT, stdin[: int(payload)]))
            stdin = stdin[int(payload) :]
        elif kind == frames.EXIT:
            return int(payload), out, err
        elif kind in (frames.YOURSELF, frames.AGAIN):
            return None
        else:
            assert kind == frames.TAKEN, kind
