"""A process that is copied for every call which needs one to itself.

Starting Python and loading all of ours takes longer than most calls. So the daemon copies itself while it has
everything loaded and no thread yet, and the copy, which does nothing else, makes a copy of itself for each call. It
ends with the daemon; what it has started goes on.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME, WORKER_NAME = "rook-forkserver", "rook-worker"
"""What the kernel calls them. The words by which they were started are the daemon's."""
_LONGEST = 256
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


def start(run: Callable[[str, int, int], object], let_go: Callable[[], object]) -> ForkServer:
    """Start it. Only for a process without threads: each copy calls `run` with the words and the files.

    `let_go` closes what the caller has open.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        return ForkServer(ours)
    try:
        ours.close()
        let_go()
        _serve(theirs, run)
    finally:
        os._exit(0)


def _serve(line: socket.socket, run: Callable[[str, int, int], object]) -> None:
    _set_name(NAME)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that end are collected by the system
    while True:
        words, files, _, _ = socket.recv_fds(line, _LONGEST, 2)
        if not words:
            return  # the daemon has ended
        with suppress(OSError):  # no process can be had: its client sees that the connection is closed, and acts itself
            if os.fork() == 0:
                line.close()
                _become_worker(words.decode(), files, run)
        for each in files:
            os.close(each)


def _become_worker(words: str, files: list[int], run: Callable[[str, int, int], object]) -> None:
    try:
        _set_name(WORKER_NAME)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in _STREAMS:
            os.dup2(nothing, stream)
        os.close(nothing)
        run(words, *files)
    finally:
        os._exit(0)


def _set_name(name: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def name_of(pid: int) -> str:
    """What the kernel calls a process; empty if it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return file.read().rstrip("\n")
    return ""
