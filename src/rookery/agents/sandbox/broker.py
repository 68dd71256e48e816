"""Outside the sandbox: runs `rook` for the agent within, as that agent and nobody else.

Whatever the agent sends, it is only words: name, token and turn are the host's own, the folder is the worktree, and
`ROOKERY_CONFINED` tells `rook` to take no path, setting or terminal from this caller.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from contextlib import suppress

from rookery.agents.sandbox.client import DENIED, HOOK, LONGEST, PRE_TOOL, RUN
from rookery.base.errors import RookError
from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Begin = Callable[[Sequence[str], tuple[int, int, int]], "Job"]
    Handle = Callable[[str, bytes], tuple[int, bytes, bytes]]

_MOST = 64
_REQUEST_SECONDS = 30.0
_GRACE = 5.0
_PASSED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Job(Record):
    """A command that runs for the agent, in a session of its own."""

    pid: int
    ending: int
    """Something that becomes readable at its end."""
    collect: Callable[[], int]
    """Its exit status; called once, when it has ended."""


class Broker:
    """Listens on a socket until it is closed; every request has a thread of its own."""

    def __init__(self, path: str, begin: Begin, handle: Handle) -> None:
        self._begin = begin
        self._handle = handle
        self._room = threading.BoundedSemaphore(_MOST)
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(_MOST)

    def start(self) -> None:
        """Begin to listen."""
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """End what still runs for the agent: it has nobody to report to."""
        with self._lock:
            for pid in self._running:
                _signal(pid, signal.SIGTERM)

    def _listen(self) -> None:
        while True:
            line, _ = self._listener.accept()
            if not self._room.acquire(blocking=False):
                line.close()
                continue
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        files: list[int] = []
        try:
            with line, suppress(OSError, ValueError):
                line.settimeout(_REQUEST_SECONDS)
                kind, payload = _receive(line, files)
                line.settimeout(None)
                if kind == RUN and len(files) == 3:
                    _answer(line, str(self._run(line, payload, files)).encode())
                elif kind == HOOK:
                    _answer(line, self._hook(payload))
        finally:
            for each in files:
                os.close(each)
            self._room.release()

    def _run(self, line: socket.socket, payload: bytes, files: list[int]) -> int:
        words = [os.fsdecode(word) for word in payload.split(b"\0")[:-1]]
        try:
            job = self._begin(words, (files[0], files[1], files[2]))
        except RookError as error:
            with suppress(OSError):
                os.write(files[2], f"rook: {error.message}\n".encode())
            return error.exit_status
        with self._lock:
            self._running.add(job.pid)
        _attend(line, job)
        with self._lock:
            self._running.discard(job.pid)
            return job.collect()

    def _hook(self, payload: bytes) -> bytes:
        event, _, body = payload.partition(b"\n")
        name = event.decode("ascii", "replace")
        try:
            status, out, err = self._handle(name, body)
        except Exception as error:  # whatever it is, a tool must not run because of it
            status, out, err = (DENIED if name == PRE_TOOL else 0), b"", f"rook: the hook failed: {error}\n".encode()
        return f"{status} {len(out)}\n".encode() + out + err


def hook_handler(root: str, session_id: str, token: str) -> Handle:
    """What answers the events of an agent's program, as that agent. It is loaded at the first of them."""

    def handle(event: str, payload: bytes) -> tuple[int, bytes, bytes]:
        from rookery.agents.hooks import handle

        answer = handle(root, session_id, event, payload, token)
        return answer.status, answer.out.encode(errors="replace"), answer.err.encode(errors="replace")

    return handle


def _attend(line: socket.socket, job: Job) -> None:
    """Wait until the command has ended, pass signals on to it, and end it if its caller goes away."""
    watch = select.poll()
    watch.register(job.ending, select.POLLIN)
    watch.register(line, select.POLLIN)
    while job.ending not in [fd for fd, _ in watch.poll()]:
        asked = _read(line)
        for number in asked:
            if number in _PASSED:
                _signal(job.pid, number)
        if not asked:
            watch.unregister(line)
            _signal(job.pid, signal.SIGTERM)
            if not watch.poll(_GRACE * 1000):
                _signal(job.pid, signal.SIGKILL)


def _read(line: socket.socket) -> bytes:
    try:
        return line.recv(64)
    except OSError:
        return b""


def _receive(line: socket.socket, files: list[int]) -> tuple[str, bytes]:
    """The kind of a request and what belongs to it; the streams that came with it are added to `files`."""
    data = bytearray()
    size = None
    while size is None or len(data) < size + 4:
        chunk, found, _, _ = socket.recv_fds(line, 65536, 3, socket.MSG_CMSG_CLOEXEC)
        files += found
        if not chunk or len(files) > 3:
            raise ValueError("no request")
        data += chunk
        if size is None and len(data) >= 4:
            size = int.from_bytes(data[:4], "big")
            if size > LONGEST:
                raise ValueError("too long")
    kind, _, payload = bytes(data[4 : size + 4]).partition(b"\n")
    return kind.decode("ascii", "replace"), payload


def _answer(line: socket.socket, payload: bytes) -> None:
    line.sendall(len(payload).to_bytes(4, "big") + payload)


def _signal(pid: int, number: int) -> None:
    """Signal a command with all that it started in its session."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
