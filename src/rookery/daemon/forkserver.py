"""A process that is copied for every call which needs one to itself.

Starting Python and loading all of ours takes longer than most calls. So the daemon copies itself while it has
everything loaded and no thread yet, and the copy, which does nothing else, makes a copy of itself for each call. It
sees the end of the daemon; what it has started goes on.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from functools import partial

from rookery.base.attached import fork, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME, WORKER_NAME = "rook-forkserver", "rook-worker"
"""What the kernel calls them. The words by which they were started are the daemon's."""
_LONGEST = 256
FAREWELL = b"leaves for good"
_STREAMS = (0, 1, 2)


class ForkServer:
    """The daemon's end. Any thread may use it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def start(self, words: str, files: tuple[int, int]) -> bool:
        """Start a process that gets the words and the open files; False if the server is gone."""
        try:
            socket.send_fds(self._line, [words.encode()], files)
        except OSError:
            return False
        return True

    def fileno(self) -> int:
        """Something that becomes readable when the server is gone: it never says anything."""
        return self._line.fileno()

    def say_farewell(self) -> None:
        """Let it end: the daemon leaves for good."""
        with suppress(OSError):
            self._line.send(FAREWELL)


def start(run: Callable[[str, int, int], object], let_go: Callable[[], object]) -> ForkServer | bytes:
    """Start it, in a process without threads: each copy of it calls `run` with the words and the files.

    It returns twice: at once, in the daemon; and in the server when the daemon has ended, with that one's last word,
    which is FAREWELL, or nothing if it died. `let_go` closes what the caller has open, for the server.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if split():
        theirs.close()
        return ForkServer(ours)
    ours.close()
    let_go()
    with theirs:
        last_word = _serve(theirs, run)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return last_word


def _serve(line: socket.socket, run: Callable[[str, int, int], object]) -> bytes:
    """Serve until the daemon ends, and give its last word."""
    set_name(NAME)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that end are collected by the system
    while True:
        words, files, _, _ = socket.recv_fds(line, _LONGEST, 2)
        if words in (b"", FAREWELL):
            return words
        with suppress(OSError):  # no process can be had: its client sees that the connection is closed, and acts itself
            fork(partial(_work, line, run, words.decode(), files))
        for each in files:
            os.close(each)


def _work(line: socket.socket, run: Callable[[str, int, int], object], words: str, files: list[int]) -> None:
    """Become a process for one call: like one that was started, it has a session and no streams."""
    line.close()
    set_name(WORKER_NAME)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in _STREAMS:
        os.dup2(nothing, stream)
    os.close(nothing)
    run(words, *files)


def set_name(name: str) -> None:
    """Let the kernel call this process so, as `ps -o comm` shows it."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def name_of(pid: int) -> str:
    """What the kernel calls a process; empty if it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return file.read().rstrip("\n")
    return ""
