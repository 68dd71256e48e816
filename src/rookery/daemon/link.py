"""The link between a sandbox's host and the daemon: as long as it holds, the daemon listens for the agent within.

A daemon that leaves or dies breaks the link, and the host makes another, starting a daemon if need be. Where no daemon
is wanted or none can be started, the host serves its agent itself, by the same code.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from rookery.client.frames import CALL, HEAD, LISTEN, TAKEN, pack
from rookery.config.environ import now, read_daemon_environ, uses_daemon
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.hello import Guest, Hello, pack_hello
from rookery.daemon.server import Daemon
from rookery.daemon.start import CannotStart, start_daemon

_SECONDS = 10.0
_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_UMASK = 0o077


class Link:
    """Keeps the socket of one agent served until it is closed."""

    def __init__(self, root: str, path: str, guest: Guest) -> None:
        self._root = root
        self._path = path
        self._guest = guest
        self._is_closed = False
        self._line: socket.socket | None = None

    def open(self) -> None:
        """Have the agent's calls served, from now on."""
        try:
            line = self._connect() if uses_daemon() else None
        except (OSError, CannotStart):
            line = None
        if line is None:
            self._serve_here()
            return
        threading.Thread(target=self._keep, args=(line,), daemon=True).start()

    def close(self) -> None:
        """Let go of it."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()

    def _keep(self, line: socket.socket) -> None:
        while not self._is_closed:
            self._line = line
            with suppress(OSError):
                line.recv(1)  # nothing is ever sent: it ends when the daemon does
            line.close()
            pause = _PAUSE
            while not self._is_closed:
                time.sleep(pause)
                try:
                    line = self._connect()
                    break
                except (OSError, CannotStart):
                    pause = min(2 * pause, _LONGEST_PAUSE)
        line.close()  # it was closed while we connected again

    def _connect(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(_SECONDS)
        try:
            line.connect(start_daemon(self._root))
            line.sendall(pack(CALL, pack_hello(_hello(self._path, self._guest.environ, self._guest.folder))))
            answer = line.recv(HEAD)
        except BaseException:
            line.close()
            raise
        if answer != pack(TAKEN):
            line.close()
            raise CannotStart("it does not take the link")
        line.settimeout(None)
        return line

    def _serve_here(self) -> None:
        daemon = Daemon(self._root, read_daemon_environ(), now, _say, Fingerprint())
        daemon.can_be_replaced = False
        daemon.listen(self._path, self._guest)
        threading.Thread(target=daemon.serve, daemon=True).start()


def _hello(path: str, environ: Mapping[str, str], folder: str) -> Hello:
    return Hello(LISTEN, folder, _UMASK, (False, False, False), (80, 24), "utf-8", [path], dict(environ))


def _say(text: str) -> None:
    os.write(2, f"rook: {text}\n".encode())
