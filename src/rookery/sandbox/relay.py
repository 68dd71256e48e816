"""The first program within a sandbox: starts what the agent's program needs there, and becomes that program.

`python … rookery.sandbox.relay PORT SOCKET PROGRAM…`. With a SOCKET, connections to the local port are passed on to the
proxy outside. The program takes the keys of its terminal, which bubblewrap ignores, as it would outside: our own start
has set their signals back.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress

from rookery.processes.spawning import become, fork

_CHUNK = 65536
_WAITING = 128


def main() -> None:
    """Listen in a child where a proxy must be reached, and go on as the program."""
    port, path, *argv = sys.argv[1:]
    if path:
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
    for key in (signal.SIGINT, signal.SIGQUIT):  # Ctrl-C in a terminal is for the program
        signal.signal(key, signal.SIG_IGN)
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
