"""The hook's own clock, its patience with a daemon that leaves, and room of its own in a busy one."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from impostor import Impostor
from live import Live, wait_for_dialogue
from live import live as live

from agent_rows import Agent
from daemons import OwnDaemon, hello, receive
from rookery.client import frames, hook
from rookery.daemon import address, calls, server
from support import SOURCE, Ran, child_environ

FINE = json.dumps({"session_id": "x", "tool_name": "Bash", "tool_input": {"command": "git status"}}).encode()
LATE = b"rook: the guard did not answer in time"

_IMPATIENT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from rookery.client import hook
hook.SECONDS = 1
hook.main()
"""


def fire(live: Live, agent: Agent, event: str = "pre-tool") -> Ran:
    """A hook whose eight seconds are one."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _IMPATIENT, SOURCE, event],
        cwd=live.folder,
        env=live.environ(agent.env),
        input=FINE,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def bee(live: Live) -> Agent:
    return Agent(live.folder, "bee")


@pytest.mark.slow
def test_the_alarm_is_set_before_it_connects(live: Live, bee: Agent) -> None:
    """A start that hangs, by the lock of those who start one."""
    assert hook.SECONDS == 8
    (live.folder / ".rookery" / "run").mkdir()
    with open(live.folder / ".rookery" / "run" / "daemon.start", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        denied = fire(live, bee)
    assert (denied.status, denied.out) == (2, b"")
    assert denied.err.startswith(LATE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        frames.pack(frames.TAKEN),
        frames.pack(frames.TAKEN) + frames.pack(frames.OUT, b"{}"),
        frames.pack(frames.TAKEN) + frames.pack(frames.EXIT, b"0")[:-1],
    ],
    ids=["taken", "output", "half a status"],
)
def test_half_an_answer_and_then_nothing_is_a_no(live: Live, bee: Agent, answer: bytes) -> None:
    other = Impostor(live, answer, hangs=True)
    try:
        denied = fire(live, bee)
        assert (denied.status, denied.out) == (2, b"")
        assert denied.err.startswith(LATE)
    finally:
        other.close()
        Path(address.lock_path(live.root)).unlink()


class Leaving(Impostor):
    """A daemon that accepts, and is gone before it has taken the call."""

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        self.calls += 1
        line.recv(65536)
        self._listener.close()
        line.close()

    def close(self) -> None:
        self._thread.join(10)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["pre-tool", "stop"])
def test_a_daemon_that_leaves_before_it_has_the_call_is_followed_by_the_next(
    live: Live, bee: Agent, event: str
) -> None:
    other = Leaving(live, None)
    answered = live.hook(event, FINE, bee.env)
    other.close()
    assert other.calls == 1
    assert (answered.status, answered.err) == (0, b"")
    assert live.log().count("serving") == 1


@pytest.mark.slow
@pytest.mark.parametrize("event", ["pre-tool", "stop"])
def test_a_daemon_that_leaves_while_hooks_come_answers_all_of_them(live: Live, bee: Agent, event: str) -> None:
    live.run("task", "list")
    first = live.identity
    # It stays for a while, for the sake of this one.
    waiting = live.start("task", "create", "one", "--description", "-")
    wait_for_dialogue(waiting)
    os.kill(first.pid, signal.SIGTERM)
    for _ in range(3):
        answered = live.hook(event, FINE, bee.env)
        assert (answered.status, answered.err) == (0, b"")
    assert live.identity != first
    waiting.communicate(b"x", timeout=60)
    assert waiting.returncode == 0


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


def test_sixty_four_busy_calls_delay_no_hook(daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, busy = threading.Event(), threading.Semaphore(0)

    def compute(_words: list[str]) -> int:
        busy.release()
        go.wait(60)
        return 0

    monkeypatch.setattr(calls, "main", compute)
    lines: list[socket.socket] = []
    try:
        for _ in range(server._MOST_AT_ONCE + 6):
            line = daemon.connect()
            lines.append(line)
            line.settimeout(20)
            line.sendall(hello(frames.RUN, ["task", "list"], project, child_environ()))
        for _ in range(server._MOST_AT_ONCE):
            assert busy.acquire(timeout=20)
        assert not busy.acquire(blocking=False)  # the rest waits
        with daemon.connect() as line:
            line.settimeout(20)
            env = child_environ(Agent(project, "bee").env)
            line.sendall(hello(frames.HOOK, ["pre-tool"], project, env) + frames.pack(frames.INPUT, FINE))
            assert receive(line)[0] == frames.TAKEN
            assert receive(line)[0] == frames.OUT
            assert receive(line) == (frames.EXIT, b"0")
    finally:
        go.set()
        for line in lines:
            assert receive(line)[0] == frames.TAKEN
            assert receive(line) == (frames.EXIT, b"0")
            line.close()
