"""The client's end of a connection. With the C modules alone: `socket` takes longer to load than a whole call."""

import _socket
import posix
import sys
import time

from rookery.client.frames import AGAIN, HEAD, LONGEST, TAKEN

SECONDS_TO_TAKE = 2.0
"""How long a daemon may take until it has a call. If it takes longer, it is stopped, or the machine is overloaded."""
SECONDS_IN_SANDBOX = 20.0
"""The same for a command in a sandbox, which cannot be run without the daemon."""

_CHUNK = 1 << 18
_PAUSE = 0.02
_CREDENTIALS = 12


class Broken(Exception):
    """The daemon does not answer, or its answer makes no sense."""


class Slow(Broken):
    """The daemon is there, and does not answer in time."""


class Connection:
    """One call's connection; raises Broken when the daemon is gone or talks nonsense."""

    def __init__(self, path: bytes, seconds: float = SECONDS_TO_TAKE) -> None:
        fill_closed_streams()
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        self._rest = b""
        self._is_sending = False
        self._waiting: list[bytes] = []
        self.has_answered = False
        """Something of the answer was shown to the caller, or the caller was asked for something."""
        try:
            self._connect(path, time.monotonic() + seconds)
        except OSError:
            self._socket.close()
            raise

    def _connect(self, path: bytes, deadline: float) -> None:
        while True:
            try:
                self._socket.connect(path)
            except BlockingIOError:  # so many wait that the kernel takes no more; it does not wait itself
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def fileno(self) -> int:
        """The socket's number."""
        return self._socket.fileno()

    def is_ours(self) -> bool:
        """True if a process of this user listens at the other end."""
        if not hasattr(_socket, "SO_PEERCRED"):
            return True  # the kernel does not know the user; the owner of the folder is this one
        credentials = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS)
        return int.from_bytes(credentials[4:8], sys.byteorder) == posix.geteuid()

    def offer(self, call: bytes) -> tuple[bytes, bytes]:
        """Offer a call, and give the first frame of the answer; AGAIN if the daemon has just left.

        After that we wait as long as a daemon needs that has taken the call. Raises Slow if the daemon has not taken
        it in time, and Broken if it has taken it and is gone.
        """
        try:
            self.send(call)
            kind, payload = self.receive()
        except Broken as reason:
            if not self._give_up():
                raise Broken(*reason.args) from reason
            if isinstance(reason, Slow):
                raise
            return AGAIN, b""
        if kind == TAKEN:
            self._socket.settimeout(None)
        return kind, payload

    def send(self, data: bytes) -> None:
        """Send frames; then those that signals wanted to send meanwhile."""
        self._is_sending = True
        try:
            self._socket.sendall(data)
            while self._waiting:
                self._socket.sendall(self._waiting.pop(0))
        except TimeoutError as error:
            raise Slow("it does not read") from error
        except OSError as error:
            raise Broken(error.strerror or str(error)) from error
        finally:
            self._is_sending = False

    def send_from_signal(self, data: bytes) -> None:
        """Send a frame from a signal's handler, but never into the middle of another one."""
        if self._is_sending:
            self._waiting.append(data)
            return
        try:
            self._socket.sendall(data)
        except OSError:
            return  # the next read finds out

    def receive(self) -> tuple[bytes, bytes]:
        """The next frame: its kind and its content."""
        while len(self._rest) < HEAD:
            self._read()
        size = int.from_bytes(self._rest[1:HEAD], "big")
        if size > LONGEST:
            raise Broken("its answer makes no sense")
        while len(self._rest) < HEAD + size:
            self._read()
        kind, payload = self._rest[:1], self._rest[HEAD : HEAD + size]
        self._rest = self._rest[HEAD + size :]
        return kind, payload

    def has_more(self) -> bool:
        """True if a frame has begun to arrive that `receive` has not given yet."""
        return len(self._rest) >= HEAD

    def _give_up(self) -> bool:
        """Withdraw the call; False if the daemon has it already.

        After the shutdown nothing more can be sent to us, so that a daemon that has not said TAKEN by now finds out
        when it tries to, and does not begin.
        """
        try:
            self._socket.shutdown(_socket.SHUT_RDWR)
            while chunk := self._socket.recv(_CHUNK):
                self._rest += chunk
        except OSError:
            pass
        self._socket.close()
        return not self._rest.startswith(TAKEN)

    def close(self) -> None:
        """Close it; a daemon that still works for us stops."""
        self._socket.close()

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise Slow("no answer in time") from error
        except OSError as error:
            raise Broken(error.strerror or str(error)) from error
        if not chunk:
            raise Broken("it ended without an answer")
        self._rest += chunk


def fill_closed_streams() -> None:
    """Open /dev/null for a standard stream that is closed, or the next open file would get its number.

    Like a closed stream, it can be neither read nor written.
    """
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            # The lowest number that is free: this one.
            posix.open("/dev/null", posix.O_WRONLY if number == 0 else posix.O_RDONLY)
