"""The link between a sandbox's host and the daemon: while it is connected, the daemon listens for the agent within.

A daemon that leaves or dies breaks the link, and the host makes another, starting a daemon if need be. Where no daemon
is wanted or none can be started, the host serves its agent itself, by the same code.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

from rookery.client.frames import HEAD, LISTEN, TAKEN, pack
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
        """Stop."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()

    def _keep(self, line: socket.socket) -> None:
        while not self._is_closed:
            self._line = line
            with suppress(OSError):
                line.recv(1)  # the daemon never sends anything: this ends when the daemon does
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
            line.sendall(pack_hello(self._hello()))
            answer = line.recv(HEAD)
        except BaseException:
            line.close()
            raise
        if answer != pack(TAKEN):
            line.close()
            raise CannotStart("it does not take the link")
        line.settimeout(None)
        return line

    def _hello(self) -> Hello:
        streams, environ = (False, False, False), dict(self._guest.environ)
        return Hello(LISTEN, self._guest.folder, _UMASK, streams, (80, 24), "utf-8", [self._path], environ)

    def _serve_here(self) -> None:
        daemon = Daemon(self._root, read_daemon_environ(), now, _say, Fingerprint())
        daemon.listen(self._path, self._guest)
        threading.Thread(target=daemon.serve, daemon=True).start()


def _say(text: str) -> None:
    os.write(2, f"rook: {text}\n".encode())
