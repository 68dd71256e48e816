"""A commit of any process wakes those that wait for commits; otherwise they sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.db import commits
from rookery.db.commits import Commits
from rookery.db.database import Database
from rookery.processes import inotify
from served import Served, make_call
from support import SOURCE, child_environ

LONG = 30.0
_WRITE = """
import os, signal, sys
from rookery.db import commits
from rookery.db.database import Database
db = Database.open(sys.argv[1])
if sys.argv[2] == "dies":
    commits.announce = lambda path: os.kill(os.getpid(), signal.SIGKILL)
with db.write():
    db.execute("INSERT INTO events (id, at, type, actor, subject, data) VALUES ('e', '', 't', 'a', 's', '{}')")
"""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    database = str(tmp_path / "rookery.db")
    db = Database.create(database)
    commits.announce(database)
    yield database
    db.close()


def write(path: str, how: str) -> int:
    """Let another process commit something."""
    env = child_environ({"PYTHONPATH": SOURCE})
    return subprocess.run([sys.executable, "-c", _WRITE, path, how], env=env, check=False).returncode


@pytest.mark.parametrize("how", ["tells", "dies"])
def test_a_commit_of_another_process_ends_the_wait(path: str, how: str) -> None:
    with Commits(path) as watch:
        waiting = Served(make_call(), lambda: watch.wait(LONG))
        began = time.monotonic()
        assert write(path, how) == (0 if how == "tells" else -signal.SIGKILL)
        waiting.value()
        assert time.monotonic() - began < LONG  # it did not come back by its time alone


def test_a_commit_before_the_wait_is_not_missed(path: str) -> None:
    with Commits(path) as watch:
        assert write(path, "tells") == 0
        began = time.monotonic()
        watch.wait(LONG)
        assert time.monotonic() - began < LONG


def test_nothing_but_a_commit_ends_the_wait_before_its_time(path: str, tmp_path: Path) -> None:
    with Commits(path) as watch:
        (tmp_path / "other").write_text("something else")
        began = time.monotonic()
        watch.wait(0.2)
        assert time.monotonic() - began >= 0.2


def test_an_interrupt_ends_the_wait(path: str) -> None:
    with Commits(path) as watch:
        call = make_call()
        is_there = threading.Event()

        def wait() -> None:
            is_there.set()
            watch.wait(LONG)

        waiting = Served(call, wait)
        is_there.wait(20)
        call.interrupt()
        assert isinstance(waiting.end(), KeyboardInterrupt)


def test_without_watches_it_looks_by_the_clock(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: inotify.Watch) -> None:
        raise OSError(24, "no more")

    monkeypatch.setattr(inotify.Watch, "__init__", refuse)
    with Commits(path) as watch:
        began = time.monotonic()
        watch.wait(LONG)
        assert time.monotonic() - began < LONG


def test_a_folder_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    with Commits(str(tmp_path / "gone" / "rookery.db")) as watch:
        watch.wait(0.01)


def test_a_transaction_that_changes_nothing_is_not_announced(path: str) -> None:
    """Else who waits, and looks by such a transaction, would wake itself."""
    db = Database.open(path)
    announced = path + commits.SUFFIX
    os.utime(announced, ns=(1, 1))
    with db.write():
        assert db.value("SELECT count(*) FROM events") == 0
    assert os.stat(announced).st_mtime_ns == 1
    with db.write():
        db.execute("INSERT INTO events (id, at, type, actor, subject, data) VALUES ('e', '', 't', 'a', 's', '{}')")
    assert os.stat(announced).st_mtime_ns > 1
    db.close()


def test_looks_that_take_their_time_come_no_more_often_than_asked_for(path: str) -> None:
    with Commits(path, rest=0.2) as watch:
        began = time.monotonic()
        for _ in range(3):
            commits.announce(path)
            watch.wait(LONG)
        assert 0.4 <= time.monotonic() - began < LONG
