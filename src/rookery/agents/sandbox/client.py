"""Within the sandbox: `rook` hands its words and its streams to the host outside, and waits for the exit status.

Agents call this all the time, so nothing is loaded that is not needed: the streams themselves go through the socket,
and whatever runs outside writes to them directly. What fails here fails closed.

A request is its length (four bytes), then its kind, a line end and what belongs to it; an answer is its length and the
answer. After a `run` each further byte is the number of a signal to pass on.
"""

from __future__ import annotations

import os
import sys

from rookery.base.errors import ProgramFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RUN, HOOK = "run", "hook"
LONGEST = 16 * 1024 * 1024
PRE_TOOL = "pre-tool"
DENIED = 2
"""The exit status by which a hook keeps a tool from running."""

_INTERRUPT = 2


def run(path: str, words: Sequence[str]) -> int:
    """Run `rook` outside, on our streams, and return its exit status. Interrupts are passed on."""
    payload = b"".join(os.fsencode(word) + b"\0" for word in words)
    line = _Line(path, None)
    try:
        line.send(RUN, payload, _streams())
        while True:
            try:
                return int(line.receive())
            except KeyboardInterrupt:
                line.interrupt()
    finally:
        line.close()


def ask(path: str, kind: str, payload: bytes, timeout: float | None = None) -> bytes:
    """Send one request and return its answer; raises ProgramFailed when there is none in time."""
    line = _Line(path, timeout)
    try:
        line.send(kind, payload, ())
        return line.receive()
    finally:
        line.close()


def ask_hook(path: str, event: str, payload: bytes, timeout: float) -> tuple[int, bytes, bytes]:
    """What comes of an event of the agent's program: exit status, output, errors. Without an answer no tool runs."""
    try:
        answer = ask(path, HOOK, event.encode() + b"\n" + payload, timeout)
        head, _, rest = answer.partition(b"\n")
        status, size = (int(word) for word in head.split())
    except (ProgramFailed, ValueError) as error:
        return (DENIED if event == PRE_TOOL else 0), b"", f"rook: {error}\n".encode()
    return status, rest[:size], rest[size:]


class _Line:
    """A connection to the host."""

    def __init__(self, path: str, timeout: float | None) -> None:
        # The C module: `socket` around it takes longer to load than all the rest.
        import _socket

        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise _silent(error) from error

    def send(self, kind: str, payload: bytes, files: Sequence[int]) -> None:
        data = kind.encode() + b"\n" + payload
        if len(data) > LONGEST:
            raise ProgramFailed(f"{len(data)} bytes are too much for the sandbox", hint="give long texts by `-`")
        data = len(data).to_bytes(4, "big") + data
        numbers = b"".join(each.to_bytes(4, sys.byteorder) for each in files)
        try:
            sent = self._socket.sendmsg([data], [(*self._rights, numbers)] if files else [])
            if sent < len(data):
                self._socket.sendall(data[sent:])
        except OSError as error:
            raise _silent(error) from error

    def receive(self) -> bytes:
        size = int.from_bytes(self._read(4), "big")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            try:
                chunk = self._socket.recv(min(size - len(found), 65536))
            except OSError as error:
                raise _silent(error) from error
            if not chunk:
                raise ProgramFailed("the sandbox's host ended without an answer", hint="the turn is over")
            found += chunk
        return found

    def interrupt(self) -> None:
        self._socket.sendall(bytes([_INTERRUPT]))

    def close(self) -> None:
        self._socket.close()


def _streams() -> tuple[int, int, int]:
    """Our standard streams; one that is closed is replaced by nothing."""
    return tuple(_stream(each) for each in (0, 1, 2))  # type: ignore[return-value]


def _stream(number: int) -> int:
    try:
        os.fstat(number)
    except OSError:
        return os.open(os.devnull, os.O_RDWR)
    return number


def _silent(error: OSError) -> ProgramFailed:
    return ProgramFailed(
        f"the sandbox's host does not answer: {error.strerror or error}", hint="the turn is over, or too much runs"
    )
