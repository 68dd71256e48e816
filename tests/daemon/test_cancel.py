"""Ctrl-C, or the death of the caller, ends what a thread of the daemon does for it, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemons import OwnDaemon, hello, receive
from rookery.base.call import sleep
from rookery.client import frames
from rookery.config.steps import reached
from rookery.daemon import calls
from rookery.ops.state import open_state
from rookery.processes.process import run
from rookery.processes.proctable import Identity
from rookery.processes.proctree import is_alive
from rookery.processes.spawning import start_detached
from support import child_environ, wait_until

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT has_begun() UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


def query(project: Path, begun: threading.Event) -> None:
    db = open_state(str(project))
    try:
        db.connection.create_scalar_function("has_begun", lambda *_: begun.set())
        db.value(ENDLESS)
    finally:
        db.close()


def wait_long(_project: Path, begun: threading.Event) -> None:
    begun.set()
    sleep(3600)


def wait_for_child(project: Path, begun: threading.Event) -> None:
    os.mkfifo(project / "pipe")

    def hear() -> None:
        (project / "pipe").read_bytes()
        begun.set()

    threading.Thread(target=hear, daemon=True).start()
    run(["sh", "-c", "echo here >pipe; exec sleep 3600"], cwd=str(project), timeout=3600)


def take_steps(_project: Path, begun: threading.Event) -> None:
    while True:
        reached("a step")
        begun.set()


WAYS = {"a query": query, "a sleep": wait_long, "a child": wait_for_child, "steps": take_steps}


def test_a_job_does_not_end_with_the_caller_that_started_it(
    daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Identity] = []

    def operation(_words: list[str]) -> int:
        jobs.append(start_detached(["sleep", "3600"], cwd=str(project), env=child_environ(), output="log"))
        sleep(3600)
        return 0

    monkeypatch.setattr(calls, "main", operation)
    with daemon.connect() as line:
        line.sendall(hello(frames.RUN, ["task", "list"], project, child_environ()))
        wait_until(lambda: jobs)
    wait_until(lambda: not daemon.daemon.is_busy)
    try:
        assert is_alive(jobs[0])
    finally:
        os.kill(jobs[0].pid, signal.SIGKILL)


@pytest.mark.parametrize("how", ["an interrupt", "the caller's death"])
@pytest.mark.parametrize("way", WAYS)
def test_a_thread_ends_what_its_caller_no_longer_wants(
    daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch, way: str, how: str
) -> None:
    begun = threading.Event()
    raised: list[str] = []

    def operation(words: list[str]) -> int:
        if words == ["other"]:
            return 0
        try:
            WAYS[way](project, begun)
        except BaseException as error:
            raised.append(type(error).__name__)
            raise
        return 0

    monkeypatch.setattr(calls, "main", operation)
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.RUN, ["task", "list"], project, child_environ()))
        assert receive(line)[0] == frames.TAKEN
        assert begun.wait(20)
        if how == "an interrupt":
            line.sendall(frames.pack(frames.SIGNAL, b"\x02"))
            assert receive(line) == (frames.EXIT, b"130")
    wait_until(lambda: not daemon.daemon.is_busy)
    assert raised == ["KeyboardInterrupt"]
    assert daemon.run(["other"], project, child_environ(), b"", 20) == (0, b"", b"")
