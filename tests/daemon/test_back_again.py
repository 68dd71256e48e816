"""A daemon that was killed is back without a call while anything is alive or due, and not otherwise."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from live import Live
from live import live as live
from test_loop import DONE, outcome, pair, sling, value
from test_workers import forkserver_of

from conftest import git
from daemons import background_of, has_daemon, workers_of
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes.proctable import Identity, read_all
from rookery.processes.proctree import is_alive
from support import wait_until

pytestmark = pytest.mark.slow
__all__ = ["live", "pair"]


def is_back(live: Live, before: Identity) -> bool:
    """True if another daemon than that one serves the project."""
    return has_daemon(live.folder) and live.place.process not in (None, before)


def is_gone(live: Live) -> bool:
    """True if there is no daemon, and nothing that would start one."""
    return not has_daemon(live.folder) and not background_of(live.folder)


def set_mode(live: Live, mode: str) -> None:
    """Change how the one agent runs, as far as the database says."""
    db = Database.open(database_path(live.root))
    with db.write():
        db.execute("UPDATE sessions SET mode = ?", (mode,))
    db.close()


def test_mail_that_was_sent_just_before_the_kill_wakes_its_agent(pair: Live) -> None:
    rounds = 4
    sling(pair, "bee", [*[{"until": {"mail_type": "status"}}] * rounds, DONE])
    for number in range(rounds):
        wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
        turns = value(pair, "SELECT count(*) FROM turns")
        assert pair.run("mail", "send", "bee", "--subject", f"{number}", "--body", "x").status == 0
        os.kill(pair.identity.pid, signal.SIGKILL)
        wait_until(lambda turns=turns: value(pair, "SELECT count(*) FROM turns") > turns, 60)  # type: ignore[misc]
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)
    assert value(pair, "SELECT count(*) FROM turns") == rounds + 1


def test_an_agent_that_was_slung_just_before_the_kill_begins(pair: Live) -> None:
    sling(pair, "bee", [DONE])
    os.kill(pair.identity.pid, signal.SIGKILL)
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)


def test_while_a_gate_runs(live: Live, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    gate = f"touch {begun}; while [ ! -e {go} ]; do sleep 0.02; done"
    (live.folder / ".rookery/config.yaml").write_text(f"gates:\n  - {{name: slow, run: '{gate}'}}\n")
    git(live.folder, "switch", "-qc", "one")
    (live.folder / "one.txt").write_text("one\n")
    git(live.folder, "add", "one.txt")
    git(live.folder, "commit", "-qm", "One")
    git(live.folder, "switch", "-q", "main")
    merger = live.start("merge", "--branch", "one")
    wait_until(begun.exists, 60)
    before = live.identity
    live.kill()
    wait_until(lambda: is_back(live, before), 60)
    assert merger.poll() is None
    go.touch()
    assert merger.wait(60) == 0
    assert git(live.folder, "show", "main:one.txt") == "one"


def test_not_where_nothing_is_alive_or_due(pair: Live) -> None:
    sling(pair, "bee", [{"wait": "mail"}])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    wait_until(lambda: pair.run("loop", "explain", "--json").data["actions"] == [], 30)
    pair.kill()
    wait_until(lambda: is_gone(pair), 60)
    assert pair.log().count("serving") == 1


def test_not_after_it_was_told_to_stop_whatever_is_alive(pair: Live) -> None:
    sling(pair, "bee", [{"until": {"mail_type": "status"}}, DONE])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    set_mode(pair, "tmux")  # a program in a terminal may end at any time
    assert pair.run("daemon", "stop").status == 0
    wait_until(lambda: is_gone(pair), 60)
    assert pair.log().count("serving") == 1
    set_mode(pair, "headless")
    assert pair.run("mail", "send", "bee", "--subject", "x", "--body", "x").status == 0  # and the next call starts one
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)


def test_with_a_fork_server_if_that_was_killed(pair: Live, tmp_path: Path) -> None:
    go = tmp_path / "go"
    sling(pair, "bee", [{"run": f"while ! test -e {go}; do sleep 0.02; done"}, DONE])
    before, server = pair.identity, forkserver_of(pair)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: is_back(pair, before), 60)
    assert not is_alive(before)
    assert forkserver_of(pair) != server
    go.touch()
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)
    assert value(pair, "SELECT count(*) FROM turns") == 1


def test_the_next_daemon_has_no_dead_children(pair: Live) -> None:
    sling(pair, "bee", [{"until": {"mail_type": "status"}}, {"hang": True}])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    before = pair.identity
    waiting = pair.start("mail", "wait", "--timeout", "60")
    wait_until(lambda: workers_of(pair.folder))
    assert pair.run("mail", "send", "bee", "--subject", "Go", "--body", "on").status == 0
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: is_back(pair, before))
    waiting.send_signal(signal.SIGINT)
    waiting.wait(20)
    wait_until(lambda: not workers_of(pair.folder))
    daemon = pair.identity.pid
    assert [row for row in read_all().values() if row.parent == daemon and row.is_dead] == []
    assert pair.run("stop", "bee").status == 0
