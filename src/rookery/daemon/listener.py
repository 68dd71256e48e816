"""A socket for calls, of the whole project or of one agent in a sandbox: through an agent's socket only it can call."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

from rookery.daemon.hello import Guest

_BACKLOG = 256
_PAUSE = 0.05


class Listener:
    """One bound socket, for this user alone."""

    def __init__(self, path: str, guest: Guest | None) -> None:
        self.path = path
        self.guest = guest
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):  # a killed daemon left it; any other file makes `bind` fail
                os.unlink(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(path)
            os.chmod(path, 0o600)
            self._socket.listen(_BACKLOG)
            self._inode = os.stat(path).st_ino
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """The socket's number; -1 once it is closed."""
        return self._socket.fileno()

    def accept(self) -> Iterator[socket.socket]:
        """Every client that waits."""
        for _ in range(_BACKLOG):
            try:
                yield self._socket.accept()[0]
            except BlockingIOError:
                return  # none is left
            except OSError:  # too many open files: the rest waits, and so do we, or epoll would wake us again at once
                time.sleep(_PAUSE)
                return

    def is_there(self) -> bool:
        """True if its path still leads to it."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Close it, and remove its file, unless another socket has replaced that."""
        if self.is_there():
            os.unlink(self.path)
        self._socket.close()
