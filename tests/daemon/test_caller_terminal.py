"""Only the client touches the terminal: the job control, the size and the pace of it reach the operation by frames."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from live import Live, client_argv
from live import live as live

from agent_rows import Agent
from conftest import git
from daemons import OwnDaemon, hello, receive, workers_of
from rookery.base.call import serving
from rookery.client import frames
from rookery.daemon.client_connection import Connection
from rookery.daemon.hello import Guest, read_hello
from rookery.processes.proctable import read_one
from rookery.processes.proctree import descendants, identify
from support import child_environ, wait_until

pytestmark = pytest.mark.slow


class Terminal:
    """A terminal with a program in it, and everything that was shown there."""

    def __init__(self, live: Live, *argv: str, columns: int = 80) -> None:
        environ = live.environ({"TERM": "xterm-256color", "PS1": "$ ", "ENV": ""})
        ours, theirs = pty.openpty()
        self._file = ours
        self.resize(columns)
        self.program = subprocess.Popen(
            ["setsid", "--ctty", *argv],
            cwd=live.folder,
            env={name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._file, 65536):
                self._shown += chunk
        except OSError:  # the other side is closed
            return

    @property
    def shown(self) -> str:
        """What was shown, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._shown.decode(errors="replace")).replace("\r", "")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._file, text.encode())

    def resize(self, columns: int) -> None:
        """Drag the window."""
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))

    def close(self) -> None:
        """Close the window."""
        if self.program.poll() is None:
            self.program.kill()
        self.program.wait()
        self._reader.join(20)
        os.close(self._file)


def test_an_operation_learns_that_the_terminal_changed_its_size(live: Live) -> None:
    live.run("task", "list")
    title = " ".join(["word"] * 40)
    terminal = Terminal(live, *client_argv("task", "create", title, "--description", "-"), columns=60)
    try:
        wait_until(lambda: _catches_resize(terminal.program.pid))
        terminal.resize(150)
        terminal.type("text\n\x04")
        assert terminal.program.wait(30) == 0
        terminal._reader.join(20)
        longest = max(len(line) for line in terminal.shown.splitlines())
        assert 100 < longest <= 150
    finally:
        terminal.close()


def _catches_resize(pid: int) -> bool:
    """True once the client talks with the daemon, and waits for input."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1]
    return bool(int(caught, 16) & (1 << 27))


def _has_input(pid: int) -> bool:
    """True if something was typed that the program has not read."""
    file = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        return fcntl.ioctl(file, termios.FIONREAD, bytes(4)) != bytes(4)
    finally:
        os.close(file)


def test_a_client_that_is_stopped_leaves_the_keyboard_to_the_shell_and_goes_on(live: Live) -> None:
    live.run("task", "list")
    terminal = Terminal(live, "sh", "-i")
    shell = identify(terminal.program.pid)
    assert shell is not None
    try:
        terminal.type(f"{shlex.join(client_argv('task', 'create', 'one', '--description', '-'))}\n")
        wait_until(lambda: [process for process in descendants(shell) if _catches_resize(process.pid)])
        (client,) = descendants(shell)
        terminal.type("before\n")
        wait_until(lambda: "before" in terminal.shown and not _has_input(client.pid))
        terminal.type("\x1a")  # which drops what no process has read
        wait_until(lambda: (row := read_one(client.pid)) is not None and row.is_stopped)
        terminal.type("echo typed-$((20 + 22))\n")  # to the shell alone
        wait_until(lambda: "typed-42" in terminal.shown)
        assert live.run("task", "list", "--json").data == []
        terminal.type("fg\n")
        wait_until(lambda: (row := read_one(client.pid)) is not None and not row.is_stopped)
        terminal.type("after\n\x04")
        wait_until(lambda: live.run("task", "list", "--json").data)
        (task,) = live.run("task", "list", "--json").data
        assert live.run("task", "get", task["id"], "--json").data["description"] == "before\nafter\n"
        terminal.type("exit\n")
        terminal.program.wait(30)
    finally:
        terminal.close()


def test_nothing_lands_while_the_client_is_stopped(live: Live, tmp_path: Path) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    run = f"touch {begun}; until test -e {go}; do sleep 0.02; done"
    (live.folder / ".rookery" / "config.yaml").write_text(f"gates:\n  - {{name: slow, run: '{run}'}}\n")
    git(live.folder, "checkout", "-q", "-b", "work")
    (live.folder / "new").write_text("new\n")
    git(live.folder, "add", "new")
    git(live.folder, "commit", "-q", "-m", "New")
    git(live.folder, "checkout", "-q", "main")
    base = git(live.folder, "rev-parse", "main")
    live.run("task", "list")
    terminal = Terminal(live, "sh", "-i")
    shell = identify(terminal.program.pid)
    assert shell is not None
    try:
        terminal.type(f"{shlex.join(client_argv('merge', '--branch', 'work'))}\n")
        wait_until(begun.exists)
        (client,) = descendants(shell)
        terminal.type("\x1a")
        wait_until(lambda: (row := read_one(client.pid)) is not None and row.is_stopped)
        (worker,) = workers_of(live.folder)
        go.touch()
        wait_until(lambda: not _gates_of(worker))
        wait_until(lambda: _is_idle(worker))
        assert workers_of(live.folder) == [worker]
        assert git(live.folder, "rev-parse", "main") == base
        terminal.type("fg\n")
        wait_until(lambda: git(live.folder, "rev-parse", "main") != base)
        terminal.type("exit\n")
        terminal.program.wait(30)
    finally:
        terminal.close()
    assert (live.folder / "new").read_text() == "new\n"


def _is_idle(pid: int) -> bool:
    """True if the process does nothing for a while, or has ended."""
    before = _spent(pid)
    time.sleep(0.5)
    return _spent(pid) == before


def _spent(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    return []


def _gates_of(worker: int) -> list[int]:
    """Processes that run for it, without those that have ended and not been collected: their collector is stopped."""
    parent = identify(worker)
    rows = [read_one(process.pid) for process in descendants(parent)] if parent else []
    return [row.pid for row in rows if row is not None and not row.is_dead]


def test_an_operation_stops_while_its_caller_does_not_read(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(theirs)
    frame = hello(frames.RUN, ["x"], tmp_path, {})
    connection.hello = read_hello(frame[frames.HEAD :])
    call = connection.make_call()
    connection.room = threading.BoundedSemaphore(1)
    lines = 200_000
    written = 0

    def write() -> None:
        nonlocal written
        assert connection.room is not None
        with connection.room, serving(call):
            for number in range(lines):
                call.stdout.write(f"{number}\n")
                written += 1
            call.stdout.flush()
        connection.end(0)

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: written)
    assert connection.room.acquire(timeout=20)  # it gives its room away only while it waits for its caller
    assert 0 < written < lines
    connection.room.release()
    shown = b""
    while (frame_ := receive(ours))[0] != frames.EXIT:
        shown += frame_[1]
    writer.join(20)
    assert shown.splitlines()[-1] == b"%d" % (lines - 1)
    connection.close()
    ours.close()


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


@pytest.mark.parametrize("is_guest", [True, False])
def test_no_open_file_is_taken_from_a_caller(daemon: OwnDaemon, project: Path, is_guest: bool) -> None:
    bee = Agent(project, "bee")
    guest = Guest(bee.session_id, child_environ(bee.env), str(project)) if is_guest else None
    read, write = os.pipe()
    with daemon.connect(guest) as line:
        line.settimeout(20)
        begin = hello(frames.RUN, ["task", "create", "x", "--description", "-"], project, child_environ())
        socket.send_fds(line, [begin], [write])
        os.close(write)
        while receive(line)[0] != frames.WANT:
            pass
        os.set_blocking(read, False)
        assert os.read(read, 1) == b""  # the call goes on, and the other end is closed
        os.close(read)
