"""A daemon without room: for open files, for threads. It drops what it cannot do, and goes on serving afterwards."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import Live, client_argv
from live import live as live

from agent_rows import Agent
from daemons import OwnDaemon, hello, receive
from rookery.client import frames
from rookery.daemon import calls, server
from rookery.daemon.hello import Guest
from rookery.processes.proctree import is_alive
from support import child_environ, wait_until

FILES = 64


@pytest.mark.slow
def test_after_all_its_files_were_open_it_serves_again(live: Live) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        argv = ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *client_argv(*words)]
        return subprocess.run(argv, cwd=live.folder, env=live.environ(), check=True, capture_output=True)

    run("task", "create", "one")
    daemon = live.identity
    files = Path(f"/proc/{daemon.pid}/fd")
    lines = []
    for _ in range(2 * FILES):
        line = socket.socket(socket.AF_UNIX)
        line.connect(live.place.socket)
        lines.append(line)
    wait_until(lambda: len(os.listdir(files)) >= FILES - 1)
    assert is_alive(daemon)
    for line in lines:
        line.close()
    wait_until(lambda: len(os.listdir(files)) < FILES // 2)
    for words in (["task", "list", "--json"], ["data", "export", "all.json", "--json"]):
        assert run(*words).stderr == b""
    assert live.identity == daemon
    assert live.log().count("serving") == 1


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No thread can be started until this is undone."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return monkeypatch


def test_where_no_thread_can_be_started_a_call_is_dropped_and_the_next_one_served(
    project: Path, daemon: OwnDaemon, no_threads: pytest.MonkeyPatch
) -> None:
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(frames.CALL)
        with pytest.raises(ConnectionResetError):
            line.recv(1)  # nothing was taken, so its client asks again
    assert daemon.log == ["a call was dropped: can't start new thread"]
    no_threads.undo()
    for _ in range(2):
        result = daemon.run(["task", "list"], project, child_environ(), b"", 20)
        assert result is not None
        assert result[0] == 0
    wait_until(lambda: not daemon.daemon.is_busy)


def test_where_no_further_thread_can_be_started_a_call_waits_for_one(
    project: Path, daemon: OwnDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def operation(words: list[str]) -> int:
        if words == ["task", "list"]:
            begun.set()
            go.wait(20)
        return 0

    monkeypatch.setattr(calls, "main", operation)
    with daemon.connect() as first:
        first.sendall(hello(frames.RUN, ["task", "list"], project, child_environ()))
        assert begun.wait(20)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no more")))
            second = daemon.connect()
        second.settimeout(20)
        second.sendall(hello(frames.RUN, ["task"], project, child_environ()))
        go.set()
        assert receive(second)[0] == frames.TAKEN
        assert receive(second) == (frames.EXIT, b"0")
        second.close()
    assert daemon.log == []


def test_a_process_that_cannot_be_started_for_a_call_harms_no_other(
    project: Path, daemon: OwnDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("rookery.daemon.worker.start_detached", refuse)
        with daemon.connect() as line:
            line.settimeout(20)
            line.sendall(hello(frames.RUN, ["data", "export", "x"], project, child_environ()))
            assert receive(line) == (b"", b"")
    wait_until(lambda: daemon.log)
    assert daemon.log == ["a call failed: OSError: [Errno 24] Too many open files"]
    result = daemon.run(["data", "export", "all.json"], project, child_environ(), b"", 60)
    assert result is not None
    assert result[0] == 0


def test_silent_connections_delay_no_caller_and_are_dropped(
    daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [daemon.connect() for _ in range(server._MOST_THREADS + 10)]
    try:
        result = daemon.run(["task", "list", "--json"], project, child_environ(), b"", 20)
        assert result is not None
        assert result[0] == 0
        monkeypatch.setattr("rookery.daemon.server.time.monotonic", lambda: 1e12)
        daemon.daemon.look()
        for line in silent:
            line.settimeout(20)
            assert line.recv(1) == b""
    finally:
        for line in silent:
            line.close()


def test_an_agent_in_a_sandbox_has_so_many_calls_at_once_and_no_more(
    daemon: OwnDaemon, project: Path, tmp_path: Path
) -> None:
    bee = Agent(project, "bee")
    path = str(tmp_path / "s")
    daemon.daemon.listen(path, Guest(bee.session_id, child_environ(bee.env), str(project)))
    lines = []
    try:
        for _ in range(server._MOST_OF_GUEST + 1):
            line = socket.socket(socket.AF_UNIX)
            line.connect(path)
            line.settimeout(20)
            lines.append(line)
        assert lines[-1].recv(1) == b""  # hung up on: its client asks again
        lines[0].sendall(hello(frames.RUN, ["status", "--json"], project, {}))
        assert receive(lines[0])[0] == frames.TAKEN
        result = daemon.run(["task", "list", "--json"], project, child_environ(), b"", 20)
        assert result is not None
    finally:
        for line in lines:
            line.close()


def test_those_who_say_nothing_are_hung_up_on_when_it_closes(project: Path) -> None:
    daemon = OwnDaemon(str(project))
    silent = [daemon.connect() for _ in range(3)]
    wait_until(lambda: len(daemon.daemon._silent) == 3)
    daemon.close()
    for line in silent:
        with line:
            line.settimeout(20)
            assert line.recv(1) == b""
