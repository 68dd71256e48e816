"""Calls that need a process of their own get a copy of one that has everything loaded."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from live import Live
from live import live as live

from daemons import workers_of
from process_tools import Rest, has_stirred, is_at_rest
from rookery.daemon import address
from rookery.daemon.forkserver import NAME, SPARE_NAME, WORKER_NAME, name_of
from rookery.processes.proctable import Identity, environ_of, read_all, read_one
from rookery.processes.proctree import is_alive
from support import wait_until

pytestmark = pytest.mark.slow


def forkserver_of(live: Live) -> Identity:
    """The copy of the daemon that makes the others."""
    pid = live.identity.pid
    (server,) = [row.identity for row in read_all().values() if row.parent == pid and name_of(row.identity.pid) == NAME]
    return server


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
    assert not [variable for variable in environ_of(pid) if variable.startswith("ROOKERY_DAEMON")]
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == 130
    wait_until(lambda: read_one(pid) is None)  # and no zombie is left


def test_neither_it_nor_a_worker_is_taken_for_the_daemon(live: Live) -> None:
    live.run("status")
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    assert address.find_processes(live.root) == [live.identity]
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


def is_gone(pid: int) -> bool:
    return read_one(pid) is None


def spares_of(live: Live) -> list[int]:
    """The copies that wait for a call."""
    server = forkserver_of(live).pid
    rows = read_all().values()
    return [row.identity.pid for row in rows if row.parent == server and name_of(row.identity.pid) == SPARE_NAME]


def test_a_call_gets_the_spare_and_the_next_one_is_made_at_once(live: Live) -> None:
    live.run("status")
    wait_until(lambda: spares_of(live))
    (first,) = spares_of(live)
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    assert workers_of(live.folder) == [first]
    wait_until(lambda: spares_of(live))
    (second,) = spares_of(live)
    assert second != first
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == 130


def test_the_spare_waits_with_the_database_open(live: Live) -> None:
    live.run("status")
    wait_until(lambda: spares_of(live))
    (spare,) = spares_of(live)
    files = Path(f"/proc/{spare}/fd")
    wait_until(lambda: any(os.readlink(path).endswith("/rookery.db") for path in files.iterdir()))


def test_a_killed_spare_is_replaced_and_costs_no_call(live: Live) -> None:
    live.run("status")
    for name in ("one.json", "two.json"):
        wait_until(lambda: spares_of(live))
        for pid in spares_of(live):
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_gone, pid))
        assert live.run("data", "export", name).status == 0
        assert (live.folder / name).stat().st_size


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_the_spare_ends_with_the_daemon(live: Live, end: str) -> None:
    live.run("status")
    wait_until(lambda: spares_of(live))
    (spare,) = spares_of(live)
    if end == "killed":
        live.kill()
    else:
        assert live.run("daemon", "stop").status == 0
    wait_until(lambda: read_one(spare) is None)


@pytest.mark.parametrize("has_spare", [True, False])
def test_a_caller_sees_the_end_of_a_killed_worker_at_once(live: Live, has_spare: bool) -> None:
    live.run("status")
    wait_until(lambda: spares_of(live))
    if not has_spare:
        for pid in spares_of(live):
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_gone, pid))
    waiting = live.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(live.folder))
    wait_until(lambda: spares_of(live))
    for pid in workers_of(live.folder):
        os.kill(pid, signal.SIGKILL)
    assert waiting.wait(20) == 1  # no other process has its connection open


@pytest.mark.parametrize(
    "words", [("mail", "wait", "--timeout", "60"), ("events", "--follow"), ("feed",), ("status", "--watch")]
)
def test_what_waits_for_something_to_happen_does_not_wake_up_before(live: Live, words: tuple[str, ...]) -> None:
    live.run("status")
    waiting = live.start(*words)
    wait_until(lambda: workers_of(live.folder))
    pids = workers_of(live.folder)
    wait_until(lambda: is_at_rest(pids))
    assert waiting.poll() is None
    before = Rest.of(pids)
    assert live.run("mail", "send", "human", "--subject", "Hello", "--body", "there").status == 0
    wait_until(lambda: has_stirred(pids, before))
