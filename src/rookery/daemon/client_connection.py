"""The daemon's end of a connection: streams for the call, and what the client sends while it runs."""

from __future__ import annotations

import errno
import io
import os
import queue
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

from rookery.base import call as calls
from rookery.base.call import Call
from rookery.client.frames import (
    BECOME,
    ERR,
    EXIT,
    HEAD,
    INPUT,
    LONGEST,
    NO_INPUT,
    OUT,
    SIGNAL,
    SIZE,
    WANT,
    pack,
    pack_fields,
)
from rookery.config.environ import read_environ
from rookery.daemon.hello import Guest, Hello, read_size
from rookery.db.pool import Pool

_CHUNK = 65536
_LONGEST_REASON = 200
_SO_PEERPIDFD = 77  # Linux 6.5; Python has no name for it
_CREDENTIALS = struct.Struct("3i")
_INTERRUPT, _STOP, _GO_ON = (bytes([number]) for number in (signal.SIGINT, signal.SIGTSTP, signal.SIGCONT))


class Gone(Exception):
    """The client has hung up, or what it sends makes no sense."""


class HungUp(Gone):
    """The client has closed the connection."""


class Became(BaseException):
    """The client goes on as another program: the call has ended without an exit status."""


class Connection:
    """One client. Its call's thread sends; the thread that watches the socket calls `feed`."""

    hello: Hello
    """What the client says of itself, or what the host of its sandbox has said."""

    def __init__(self, line: socket.socket, guest: Guest | None = None) -> None:
        self._line = line
        self.guest = guest
        """The agent whose socket it came through."""
        self.session_id = None if guest is None else guest.session_id
        credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid, self.user, _ = _CREDENTIALS.unpack(credentials)
        """The process and the user at the other end, as the kernel knows them."""
        self._lock = threading.Lock()
        self._rest = bytearray()
        self._input: queue.SimpleQueue[bytes | OSError] = queue.SimpleQueue()
        self.call: Call | None = None
        self.size = (80, 24)
        self.is_reading = False
        """It waits for the caller's input."""
        self.is_hook = False
        self.can_be_stopped = False
        """The call has a process to itself. In a thread it would keep what others need, and is short."""
        self.room: threading.BoundedSemaphore | None = None
        """The semaphore that the call holds, but not while it waits for its client."""
        self.on_interrupt: Callable[[], None] = self._interrupt_call

    @property
    def may_take_longer(self) -> bool:
        """True if a daemon that leaves does not interrupt it.

        A call that only waits for its caller's input has not begun. A hook's program waits for it anyway, and would
        take an interrupted one for answered.
        """
        return self.is_reading or self.is_hook

    def fileno(self) -> int:
        """The socket's number; -1 once it is closed."""
        return self._line.fileno()

    def has_data(self) -> bool:
        """True if the client has sent something, or has hung up."""
        try:
            self._line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError as error:
            return not isinstance(error, BlockingIOError)
        return True

    @property
    def is_agents(self) -> bool:
        """True if an agent calls, or what an agent has started."""
        return self.session_id is not None or read_environ(self.hello.environ).is_agents_process

    def is_peer_alive(self) -> bool:
        """True if the process that connected has not ended, or if the kernel does not tell."""
        try:
            process = int.from_bytes(self._line.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4), sys.byteorder)
        except OSError as error:
            return error.errno == errno.ENOPROTOOPT
        watch = select.poll()
        watch.register(process, select.POLLIN)
        try:
            return not watch.poll(0)  # a process is ready to be read once it has ended
        finally:
            os.close(process)

    def receive(self, expected: bytes, seconds: float, most: int = LONGEST) -> bytes:
        """The content of the next frame. Nothing behind it is read: another process may go on from there."""
        self._line.settimeout(seconds)
        try:
            head = self._read(HEAD)
            size = int.from_bytes(head[1:], "big")
            if size > most:
                raise Gone(f"a frame of {size} bytes")
            payload = self._read(size)
        finally:
            self._line.settimeout(None)
        if head[:1] != expected:
            raise Gone("its frame is not the one that comes next")
        return payload

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                chunk = self._line.recv(min(size, _CHUNK))
            except OSError as error:
                raise Gone(error.strerror or "it is too slow") from error
            if not chunk:
                raise HungUp("it has hung up")
            parts.append(chunk)
            size -= len(chunk)
        return b"".join(parts)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a frame, waiting while the client does not read; raises BrokenPipeError when it is gone."""
        data = pack(kind, payload)
        with self._lock:
            try:
                with suppress(BlockingIOError):
                    data = data[self._line.send(data, socket.MSG_DONTWAIT) :]
                if data:
                    with self._outside():
                        self._line.sendall(data)
            except OSError as error:
                raise BrokenPipeError("the caller is gone") from error

    def feed(self, flags: int = socket.MSG_DONTWAIT) -> bool:
        """Read what the client has sent, and act on it; False once it has hung up. Without flags it waits for that."""
        try:
            chunk = self._line.recv(_CHUNK, flags)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            chunk = b""
        if not chunk:
            self.on_interrupt()
            self._take_input(b"")
            return False
        self._rest += chunk
        while len(self._rest) >= HEAD:
            size = int.from_bytes(self._rest[1:HEAD], "big")
            if size > LONGEST:
                self.on_interrupt()
                return False
            if len(self._rest) < HEAD + size:
                break
            kind, payload = bytes(self._rest[:1]), bytes(self._rest[HEAD : HEAD + size])
            del self._rest[: HEAD + size]
            self._act_on(kind, payload)
        return True

    def _act_on(self, kind: bytes, payload: bytes) -> None:
        if kind == INPUT and self.is_reading:  # what was not asked for is not kept
            self._take_input(payload)
        elif kind == NO_INPUT and self.is_reading:
            self._take_input(OSError(errno.EBADF, payload[:_LONGEST_REASON].decode("utf-8", "replace")))
        elif kind == SIGNAL and payload == _INTERRUPT:
            self.on_interrupt()
        elif kind == SIGNAL and self.can_be_stopped and self.call is not None:
            if payload == _STOP:
                self.call.stop()
            elif payload == _GO_ON:
                self.call.go_on()
        elif kind == SIZE:
            with suppress(ValueError):
                self.size = read_size(payload)

    def _take_input(self, data: bytes | OSError) -> None:
        self._input.put(data)
        if self.call is not None:
            self.call.wake()

    def _interrupt_call(self) -> None:
        if self.call is not None:
            self.call.interrupt()

    def read_input(self, most: int) -> bytes:
        """Some of the caller's standard input; nothing at its end. Raises OSError if the caller cannot read it."""
        self.is_reading = True
        try:
            self.send(WANT, b"%d" % most)
            with self._outside():
                while self._input.empty():
                    calls.wait()
            data = self._input.get()
            if isinstance(data, OSError):
                raise data
            return data
        finally:
            self.is_reading = False

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """While the call waits for its client, another may run in its place."""
        if self.room is not None:
            self.room.release()
        try:
            yield
        finally:
            if self.room is not None:
                self.room.acquire()

    def become(self, words: Sequence[str]) -> NoReturn:
        """Let the client's process go on as another program."""
        self.send(BECOME, pack_fields([os.fsencode(word) for word in words]))
        raise Became

    def end(self, status: int) -> None:
        """Send the exit status, if the client is still there."""
        with suppress(BrokenPipeError):
            self.send(EXIT, b"%d" % status)

    def cut(self) -> None:
        """End whatever waits for the client."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, and forget the call: they refer to each other, and its buffers are large."""
        self._line.close()
        self.call = None

    def make_call(self, connections: Pool | None = None) -> Call:
        """The call that a thread of ours, or a process, will serve."""
        hello = self.hello
        self.size = hello.size
        self.call = Call(
            environ=hello.environ,
            cwd=hello.folder,
            umask=hello.umask,
            pid=self.pid,
            streams=self._streams(hello),
            size=lambda: self.size,
            become=None if self.session_id else self.become,  # from a sandbox no call gets into a program out here
            session_id=self.session_id,
            is_caller_alive=self.is_peer_alive,
            connections=connections,
        )
        return self.call

    def _streams(self, hello: Hello) -> tuple[TextIO, TextIO, TextIO]:
        reads, writes, complains = hello.terminals
        out = io.BufferedWriter(_Output(self, OUT, is_terminal=writes), _CHUNK)  # type: ignore[type-var]
        err = io.BufferedWriter(_Output(self, ERR, is_terminal=complains))  # type: ignore[type-var]
        source = io.BufferedReader(_Input(self, is_terminal=reads))
        encoding = hello.encoding
        return (
            io.TextIOWrapper(source, encoding, "surrogateescape"),
            io.TextIOWrapper(out, encoding, "replace", line_buffering=writes),  # a terminal may lack some characters
            io.TextIOWrapper(err, encoding, "backslashreplace", line_buffering=True),
        )


class _Stream(io.RawIOBase):
    def __init__(self, connection: Connection, *, is_terminal: bool) -> None:
        self._connection = connection
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class _Output(_Stream):
    def __init__(self, connection: Connection, kind: bytes, *, is_terminal: bool) -> None:
        super().__init__(connection, is_terminal=is_terminal)
        self._kind = kind

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        part = bytes(memoryview(data)[:_CHUNK])
        if self._connection.fileno() >= 0:  # else the call is over, and the rest of its output is dropped
            self._connection.send(self._kind, part)
        return len(part)


class _Input(_Stream):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._connection.read_input(len(buffer))[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)
