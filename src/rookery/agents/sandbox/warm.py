"""A process that has `rook` loaded, and copies itself for every command: an agent's call costs no start of Python.

It is made before the host has a second thread, and does nothing but wait, copy itself and go when the host is gone.
Each copy has a session, streams and memory of its own; it tells its number, and at its end its exit status, by a pipe.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module

from rookery.agents.sandbox.broker import Job
from rookery.base.attached import fork
from rookery.base.errors import ProgramFailed
from rookery.config.environ import enter_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# By name: it stands above us, and is another program to us. What almost every command needs is loaded beforehand; what
# cannot be loaded fails where it is used.
_ROOK = "rookery.cli.main"
_LOADED = (
    *(_ROOK, "rookery.cli.parse", "rookery.ops.context", "rookery.db.database", "rookery.mail.ops"),
    *("rookery.tasks.ops", "rookery.agents.permits", "rookery.agents.pulse", "rookery.cli.render"),
)
_KILLED = 128 + signal.SIGKILL
_CHUNK = 65536


class Warm:
    """Runs `rook` in one environment, in the folder that we stand in."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._line, theirs = socket.socketpair()
        self._lock = threading.Lock()
        fork(lambda: _serve(theirs, self._line, env))
        theirs.close()

    def begin(self, words: Sequence[str], streams: tuple[int, int, int]) -> Job:
        """Start a command on these streams."""
        payload = b"".join(os.fsencode(word) + b"\0" for word in words)
        message = len(payload).to_bytes(4, "big") + payload
        told, telling = os.pipe()
        try:
            with self._lock:
                sent = socket.send_fds(self._line, [message], [*streams, telling])
                self._line.sendall(message[sent:])
        except OSError as error:
            os.close(told)
            raise ProgramFailed(f"`rook` cannot be run any more: {error.strerror or error}") from error
        finally:
            os.close(telling)
        return Job(int.from_bytes(os.read(told, 4), "big"), told, lambda: _collect(told))


def _collect(told: int) -> int:
    """The exit status, once the pipe has it or is closed."""
    said = os.read(told, 4)
    os.close(told)
    return int.from_bytes(said, "big") if said else _KILLED


def _serve(line: socket.socket, hosts: socket.socket, env: Mapping[str, str]) -> None:
    """Load what commands need, and make a copy for each, until the host is gone."""
    hosts.close()
    os.setsid()  # what is typed in the agent's terminal is not for us
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects the copies
    enter_environ(env)
    for name in _LOADED:
        with suppress(ImportError):
            import_module(name)
    while True:
        words, files = _receive(line)
        if not words and not files:
            return
        fork(lambda words=words, files=files: _run(line, words, files))  # type: ignore[misc]
        for each in files:
            os.close(each)


def _receive(line: socket.socket) -> tuple[list[str], list[int]]:
    data, files = bytearray(), []  # type: tuple[bytearray, list[int]]
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        # No further than this message: the next one brings files of its own.
        wanted = 4 if len(data) < 4 else 4 + int.from_bytes(data[:4], "big") - len(data)
        chunk, found, _, _ = socket.recv_fds(line, min(wanted, _CHUNK), 4, socket.MSG_CMSG_CLOEXEC)
        files += found
        if not chunk:
            return [], []
        data += chunk
    return [os.fsdecode(word) for word in bytes(data[4:]).split(b"\0")[:-1]], files


def _run(line: socket.socket, words: list[str], files: list[int]) -> None:
    """One command, as if it had been started on these streams."""
    line.close()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, telling = files
    os.write(telling, os.getpid().to_bytes(4, "big"))
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    _open_streams()
    try:
        status: int = import_module(_ROOK).main(words)
    except SystemExit as leaving:  # argparse, after it has shown its help
        status = leaving.code if isinstance(leaving.code, int) else 0
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(telling, status.to_bytes(4, "big"))


def _open_streams() -> None:
    """Python's own streams anew: how they behave depends on what they lead to."""
    text: dict[str, Any] = {"encoding": sys.stdout.encoding, "closefd": False}
    sys.stdin = open(0, errors="surrogateescape", **text)  # noqa: SIM115
    sys.stdout = open(1, "w", errors="strict", buffering=1 if os.isatty(1) else -1, **text)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, **text)  # noqa: SIM115
