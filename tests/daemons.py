"""Daemons for tests: within the test's own process, where whatever uses the process's globals is found out."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

from rookery.client import frames
from rookery.config.environ import now
from rookery.daemon.server import Daemon

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_UMASK = 0o022


class OwnDaemon:
    """A daemon without a socket in the file system, served by a thread of this process."""

    def __init__(self, root: str) -> None:
        self.said: list[str] = []
        self.daemon = Daemon(root, {}, now, self.said.append)
        self._thread = threading.Thread(target=self.daemon.serve, daemon=True)
        self._thread.start()

    def connect(self) -> socket.socket:
        """A connection as a client has one."""
        ours, theirs = socket.socketpair()
        self.daemon.adopt(theirs)
        return ours

    def run(
        self, words: list[str], folder: Path, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes] | None:
        """Run a command as a client does; None if the daemon leaves it to a process."""
        with self.connect() as line:
            line.settimeout(timeout)
            line.sendall(hello(frames.RUN, words, folder, env))
            return _converse(line, stdin)

    def close(self) -> None:
        """End it."""
        self.daemon.stop("the test is over")
        self._thread.join(10)
        assert not self._thread.is_alive()
        self.daemon.close()


def hello(
    kind: bytes,
    words: list[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    terminals: bytes = b"000",
    size: bytes = b"80x24",
    umask: int = _UMASK,
) -> bytes:
    """What a client sends first."""
    fields = [frames.PROTOCOL, kind, os.fsencode(folder), b"%o" % umask, terminals, size, b"utf-8", b"%d" % len(words)]
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
