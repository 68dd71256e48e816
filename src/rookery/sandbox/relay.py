"""Within a sandbox that has no network: passes connections to a local port on to the proxy outside, by a socket.

`python … rookery.sandbox.relay PORT SOCKET PROGRAM…` starts to listen, and becomes the program.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress

from rookery.processes.spawning import become, fork

_CHUNK = 65536
_WAITING = 128


def main() -> None:
    """Listen in a child, and go on as the program."""
    port, path, *argv = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=_WAITING)
    fork(lambda: _listen(listener, path))
    listener.close()
    become(argv)


def pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until both sides have closed."""
    back = threading.Thread(target=_carry, args=(other, one), daemon=True)
    back.start()
    _carry(one, other)
    back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        source.shutdown(socket.SHUT_RD)


def _listen(listener: socket.socket, path: str) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    while True:
        line, _ = listener.accept()
        threading.Thread(target=_forward, args=(line, path), daemon=True).start()


def _forward(line: socket.socket, path: str) -> None:
    with line, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as outside, suppress(OSError):
        outside.connect(path)
        pump(line, outside)
