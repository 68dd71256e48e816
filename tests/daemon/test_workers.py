"""Calls that need a process of their own get a copy of one that has everything loaded."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from live import Live
from live import live as live

from daemons import workers_of
from rookery.base.proctable import Identity, environ_of, read_all, read_one
from rookery.base.proctree import is_alive
from rookery.daemon import place
from rookery.daemon.forkserver import NAME, WORKER_NAME, name_of
from support import wait_until

pytestmark = pytest.mark.slow


def forkserver_of(live: Live) -> Identity:
    """The copy of the daemon that makes the others."""
    pid = live.identity.pid
    (found,) = [row.identity for row in read_all().values() if row.parent == pid and name_of(row.identity.pid) == NAME]
    return found


def ignores(pid: int, number: int) -> bool:
    """True if the process ignores the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) & 1 << (number - 1))


def test_a_call_gets_a_copy_that_is_gone_afterwards(live: Live) -> None:
    assert live.run("status").status == 0
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    (pid,) = workers_of(live.folder)
    row = read_one(pid)
    assert row is not None
    assert row.parent == forkserver_of(live).pid
    assert name_of(pid) == WORKER_NAME
    assert os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}
    assert not ignores(pid, signal.SIGCHLD)  # else it would take every git for successful
    assert not [each for each in environ_of(pid) if each.startswith("ROOKERY_DAEMON")]
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == 130
    wait_until(lambda: read_one(pid) is None)  # and no zombie is left


def test_neither_it_nor_a_worker_is_taken_for_the_daemon(live: Live) -> None:
    live.run("status")
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    assert place.find_processes(live.root) == [live.identity]
    assert live.run("daemon", "stop").status == 0
    assert waiting.poll() is None
    (pid,) = workers_of(live.folder)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == 130
    wait_until(lambda: read_one(pid) is None)


def test_it_ends_with_a_daemon_that_is_killed_and_its_workers_go_on(live: Live) -> None:
    live.run("status")
    server = forkserver_of(live)
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    live.kill()
    wait_until(lambda: not is_alive(server))
    assert live.run("mail", "send", "human", "--subject", "Hello", "--body", "there").status == 0
    assert waiting.wait(20) == 0
    assert b"Hello" in waiting.communicate()[0]


def test_a_daemon_whose_server_was_killed_leaves_and_the_next_call_has_both(live: Live) -> None:
    live.run("status")
    before = live.identity
    os.kill(forkserver_of(live).pid, signal.SIGKILL)
    for name in ("one.json", "two.json"):  # also in the moment when neither is there
        assert live.run("data", "export", name).status == 0
        assert (live.folder / name).stat().st_size
    wait_until(lambda: not is_alive(before))
    assert live.run("status").status == 0
    assert is_alive(forkserver_of(live))
