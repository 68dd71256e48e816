"""The fork server: a process that copies itself for every call that needs a process.

Starting Python and loading our modules takes longer than most calls. So the daemon forks while it has everything loaded
and no thread yet, and the copy, which does nothing else, forks for each call. It sees the end of the daemon; the
workers that it has started go on.

Even a copy takes a few milliseconds: to make it, and to write to memory that it shares until then. So there is always
one *spare*, made and prepared before it is needed.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from rookery.processes.proctable import read_file
from rookery.processes.spawning import fork, split

Run = Callable[[str, int, int], object]
"""Serves a call: it gets a word and the two files."""

NAME, SPARE_NAME, WORKER_NAME = "rook-forkserver", "rook-spare", "rook-worker"
"""What the kernel calls them. The words by which they were started are the daemon's."""
COPIES = (NAME, SPARE_NAME, WORKER_NAME)
_LONGEST, _FILES = 256, 2
FAREWELL = b"leaves for good"
_STREAMS = (0, 1, 2)


class ForkServer:
    """The daemon's end. Any thread may use it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def start(self, word: str, files: tuple[int, int]) -> bool:
        """Start a process that gets the word and the open files; False if the server is gone."""
        return _send(self._line, word.encode(), files)

    def fileno(self) -> int:
        """A file that becomes readable when the server is gone: the server never sends anything."""
        return self._line.fileno()

    def say_farewell(self) -> None:
        """Let the server end: the daemon leaves for good."""
        with suppress(OSError):
            self._line.send(FAREWELL)


def start(prepare: Callable[[], Run], let_go: Callable[[], object]) -> ForkServer | bytes:
    """Start the server, in a process without threads. Each copy calls `prepare`, and the result when it has a call.

    This returns twice: at once, in the daemon; and in the server when the daemon has ended, with what it last sent:
    FAREWELL, or nothing if it died. `let_go` closes what the daemon has open, for the server.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if split():
        theirs.close()
        return ForkServer(ours)
    ours.close()
    let_go()
    with theirs:
        farewell = _serve(theirs, lambda own: _work(own, prepare))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return farewell


def _serve(line: socket.socket, work: Callable[[socket.socket], object]) -> bytes:
    """Serve until the daemon ends, and return what it last sent. The spare ends with its line."""
    set_name(NAME)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects copies that end
    spare = _start_spare(line, work)
    while True:
        words, files, _, _ = socket.recv_fds(line, _LONGEST, _FILES)
        if words in (b"", FAREWELL):
            _close(spare)
            return words
        if not _send(spare, words, files):  # it was killed
            _close(spare)
            spare = _start_spare(line, work, files)
            _send(spare, words, files)  # if no process can be started, the client sees the end of its connection
        _close(spare)
        for file in files:  # before the next copy, which would keep the connection open
            os.close(file)
        spare = _start_spare(line, work)


def _start_spare(
    line: socket.socket, work: Callable[[socket.socket], object], files: Sequence[int] = ()
) -> socket.socket | None:
    """Start a copy that waits for a call, and return the line to it; None if no process can be started.

    The copy closes `files`, which the server has open for a call.
    """
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError:  # too many files are open
        return None

    def wait() -> None:
        line.close()
        ours.close()
        for file in files:
            os.close(file)
        work(theirs)

    with theirs:
        try:
            fork(wait)
        except OSError:
            ours.close()
            return None
    return ours


def _close(spare: socket.socket | None) -> None:
    if spare is not None:
        spare.close()


def _send(line: socket.socket | None, words: bytes, files: Sequence[int]) -> bool:
    """Send a call with its open files; False if the other end is gone."""
    with suppress(OSError):
        return line is not None and socket.send_fds(line, [words], files) > 0
    return False


def _work(line: socket.socket, prepare: Callable[[], Run]) -> None:
    """Become a process for one call, with a session of its own and no streams."""
    set_name(SPARE_NAME)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in _STREAMS:
        os.dup2(nothing, stream)
    os.close(nothing)
    run = prepare()
    with line:
        words, files, _, _ = socket.recv_fds(line, _LONGEST, _FILES)
    if words:
        set_name(WORKER_NAME)
        run(words.decode(), *files)


def set_name(name: str) -> None:
    """Let the kernel call this process so, as `ps -o comm` shows it."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def name_of(pid: int) -> str:
    """What the kernel calls a process; empty if it is gone."""
    return read_file(pid, "comm").rstrip("\n")
