"""A socket and a lock file that look like a daemon's, and are not."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

from live import Live

from rookery.daemon import address


def write_lock(root: str, content: bytes) -> None:
    """Write the lock file, behind what shows that it is no copy."""
    path = Path(address.lock_path(root))
    path.touch()
    stat = path.stat()
    path.write_bytes(f"{stat.st_dev}:{stat.st_ino} ".encode() + content)


class Impostor:
    """Something that listens in the daemon's place."""

    def __init__(self, live: Live, answer: bytes | None, *, hangs: bool = False) -> None:
        folder = Path(address.lock_path(live.root)).parent
        folder.mkdir(exist_ok=True)
        path = str(folder / "daemon.sock")
        write_lock(live.root, f"{path}\n{{}}\n".encode())
        self._answer = answer
        self._hangs = hangs
        """It keeps the connection open after its answer."""
        self.calls = 0
        self._kept: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self._kept.append(line)
            self.calls += 1
            if self._answer is not None:
                with suppress(OSError):  # the test is over
                    line.recv(65536)
                    line.sendall(self._answer)
                    if not self._hangs:
                        line.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()
        for connection in self._kept:
            connection.close()
