"""The loop in real daemons: what happens while there are no calls, and when they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from live import Live
from live import live as live

from conftest import git
from daemons import has_daemon
from rookery.base.ids import handle
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes.proctree import is_alive, marked
from rookery.sessions import journal
from rookery.sessions.journal import find_runner
from selection import Sample
from support import wait_until

pytestmark = pytest.mark.slow

DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "Done"}}


@pytest.fixture
def pair(live: Live) -> Live:
    (live.folder / ".rookery" / "config.local.yaml").write_text(
        "agents:\n  stop_grace: 0.3s\nprovision:\n  ports: 0\nsandbox:\n  mode: 'off'\n"
    )
    return live


def sling(live: Live, name: str, steps: list[Any]) -> str:
    """Start an agent on a script; return its task."""
    script = f"```rook-script\n{yaml.safe_dump(steps)}```"
    created = live.run("task", "create", f"Task of {name}", "--description", script, "--json")
    task = str(created.data["id"])
    ran = live.run("sling", task, "--name", name, "--json")
    assert ran.status == 0, ran
    return task


def value(live: Live, sql: str, *values: object) -> Any:
    db = Database.open(database_path(live.root))
    try:
        return db.value(sql, values)
    finally:
        db.close()


def outcome(live: Live, name: str) -> Any:
    return value(live, "SELECT outcome FROM sessions WHERE agent = ? ORDER BY seq DESC", name)


def turn_of(live: Live, name: str) -> Any:
    sql = "SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.agent LIKE ? AND t.state = 'running'"
    return value(live, sql, name)


def test_a_killed_daemon_interrupts_no_turn_and_is_back_while_one_is_running(pair: Live, tmp_path: Path) -> None:
    go = tmp_path / "go"
    task = sling(
        pair,
        "bee",
        [
            {"run": f"while ! test -e {go}; do sleep 0.02; done"},
            {"edit": {"path": "work.txt", "text": "work\n"}},
            {"commit": "Work"},
            DONE,
        ],
    )
    wait_until(lambda: turn_of(pair, "bee") is not None, 30)
    turn = turn_of(pair, "bee")
    wait_until(lambda: find_runner(pair.root, turn) is not None, 30)
    runner = find_runner(pair.root, turn)
    assert runner is not None
    for _ in range(3):
        before = pair.identity
        pair.kill()
        # Without any call: the runner starts the next one.
        wait_until(lambda before=before: has_daemon(pair.folder) and pair.place.process != before, 30)  # type: ignore[misc]
        assert is_alive(runner)
    go.touch()
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)
    assert git(pair.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "work"
    assert value(pair, "SELECT count(*) FROM turns") == 1
    assert value(pair, "SELECT count(*) FROM events WHERE type = 'turn.ended'") == 1
    assert value(pair, "SELECT count(*) FROM messages WHERE type = 'worker_done'") == 1
    wait_until(lambda: not is_alive(runner))
    assert not os.listdir(journal.folder_of(pair.root))


def test_a_daemon_killed_again_and_again_interrupts_no_turn_and_loses_nothing(pair: Live, sample: Sample) -> None:
    """A swarm that mails itself: 100 kills with `--all`, a few otherwise.

    A call that a killed daemon was just serving fails and says so, and its caller repeats it. That is not what is tried
    here, so what agents call runs in their own processes.
    """
    settings = pair.folder / ".rookery" / "config.local.yaml"
    settings.write_text(settings.read_text().replace("  ports: 0\n", "  ports: 0\n  env:\n    ROOKERY_DAEMON: 'off'\n"))
    kills = len(sample(range(100), 12))
    names = ("ant", "bee", "cat", "dog")
    rounds = 3
    for number, name in enumerate(names):
        other = names[(number + 1) % len(names)]
        steps: list[Any] = []
        for turn in range(rounds):
            steps += [
                {"edit": {"path": f"{name}{turn}.txt", "text": f"{turn}\n"}},
                {"commit": f"{name} {turn}"},
                {"sleep": 0.3},
                {"mail": {"to": other, "type": "status", "subject": f"from {name} {turn}"}},
                {"until": {"mail_type": "status"}},
            ]
        sling(pair, name, [{"sleep": 1}, *steps, DONE])
    deaths = pair.folder / ".rookery/run/keeper"
    for number in range(kills):
        before = pair.identity
        deaths.unlink(missing_ok=True)  # so many a minute would be too many
        os.kill(before.pid, signal.SIGKILL)
        if number % 4 == 0 or turn_of(pair, "%") is None:
            pair.run("status")
        wait_until(lambda before=before: has_daemon(pair.folder) and pair.place.process != before, 30)  # type: ignore[misc]
        time.sleep(0.05 * (number % 5))
    pair.run("status")
    for name in names:
        wait_until(lambda name=name: outcome(pair, name) is not None, 90)  # type: ignore[misc]
        assert outcome(pair, name) == "completed", pair.log()
    db = Database.open(database_path(pair.root))
    assert db.all("SELECT DISTINCT state FROM turns") == [("done",)]
    sent = db.all("SELECT sender, recipient, subject FROM messages WHERE type = 'status'")
    assert len(sent) == len(set(sent)) == len(names) * rounds
    assert db.value("SELECT count(*) FROM messages WHERE type = 'worker_done'") == len(names)
    assert db.value("SELECT count(*) FROM messages WHERE type = 'worker_died'") == 0
    turns = db.value("SELECT count(*) FROM turns")
    for kind in ("turn.started", "turn.ended"):
        assert (
            db.value("SELECT count(DISTINCT json_extract(data, '$.turn_id')) FROM events WHERE type = ?", (kind,))
            == turns
        )
        assert db.value("SELECT count(*) FROM events WHERE type = ?", (kind,)) == turns
    for name in names:
        branch = db.value("SELECT branch FROM sessions WHERE agent = ?", (name,))
        log = git(pair.folder, "log", "--format=%s", f"main..{branch}").splitlines()
        assert log == [f"{name} {number}" for number in reversed(range(rounds))]
    db.close()


def test_a_turn_that_ends_while_no_daemon_is_there_is_settled_by_the_next(pair: Live, tmp_path: Path) -> None:
    """A daemon that is stopped for good does not come back before the turn has ended."""
    go = tmp_path / "go"
    sling(pair, "bee", [{"run": f"while ! test -e {go}; do sleep 0.02; done"}, DONE])
    wait_until(lambda: turn_of(pair, "bee") is not None, 30)
    turn = turn_of(pair, "bee")
    wait_until(lambda: find_runner(pair.root, turn) is not None, 30)
    os.kill(pair.identity.pid, signal.SIGSTOP)
    go.touch()
    wait_until(lambda: not journal.is_running(pair.root, turn), 60)
    assert outcome(pair, "bee") is None
    pair.kill()
    assert pair.run("task", "list").status == 0
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)


def test_mail_from_any_process_wakes_a_waiting_agent(pair: Live) -> None:
    steps = [{"until": {"mail_type": "status"}}, {"edit": {"path": "m.txt", "text": "{mail.body}"}}, DONE]
    sling(pair, "bee", steps)
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    pair.run("mail", "send", "bee", "--subject", "News", "--body", "the news", env={"ROOKERY_DAEMON": "off"})
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)
    assert (pair.folder / ".rookery/worktrees/bee/m.txt").read_text() == "the news"


def test_forty_waiting_agents_have_no_process_and_cost_nothing(pair: Live) -> None:
    sling(pair, "bee", [{"wait": "mail"}])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    db = Database.open(database_path(pair.root))
    columns = [
        row[1] for row in db.all("PRAGMA table_info(sessions)") if row[1] not in ("seq", "id", "agent", "task_id")
    ]
    with db.write():
        for number in range(39):
            db.execute(
                f"INSERT INTO sessions (id, agent, task_id, {', '.join(columns)}) "
                f"SELECT ?, ?, NULL, {', '.join(columns)} FROM sessions WHERE agent = 'bee'",
                (f"ses_{number}", f"drone{number}"),
            )
            db.execute(
                "INSERT INTO turns (id, session_id, number, cause, state, started_at) "
                "VALUES (?, ?, 1, 'begin', 'done', '')",
                (f"turn_{number}", f"ses_{number}"),
            )
    sessions = [row[0] for row in db.all("SELECT id FROM sessions")]
    db.close()
    pair.run("task", "create", "something happens")
    assert not any(marked("ROOKERY_SESSION", session) for session in sessions)
    assert not any(marked("ROOKERY_RUNNER", session) for session in sessions)
    wait_until(lambda: _idle(pair), 60)
    assert "cannot" not in pair.log()


def _idle(live: Live) -> bool:
    """True if the daemon has used no processor time for half a second."""

    def used() -> int:
        words = Path(f"/proc/{live.identity.pid}/stat").read_text().rpartition(")")[2].split()
        return int(words[11]) + int(words[12])

    before = used()
    time.sleep(0.5)
    return used() == before


def test_stopping_an_agent_leaves_the_daemon_alone(pair: Live) -> None:
    sling(pair, "bee", [{"child": "sleep 1000"}, {"hang": True}])
    wait_until(lambda: turn_of(pair, "bee") is not None, 30)
    daemon = pair.identity
    assert pair.run("stop", "bee").status == 0
    assert is_alive(daemon)
    assert outcome(pair, "bee") == "stopped"
    session = value(pair, "SELECT id FROM sessions")
    wait_until(lambda: not marked("ROOKERY_SESSION", session), 20)


def test_the_loop_explains_itself(pair: Live) -> None:
    sling(pair, "bee", [{"wait": "mail"}])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    shown = pair.run("loop", "explain")
    assert shown.status == 0, shown
    assert b"The control loop is running." in shown.out
    assert b"bee" in shown.out
    explained = pair.run("loop", "explain", "--json").data
    assert (explained["runs"], explained["actions"], explained["timers"]) == (True, [], [])
    assert explained["facts"]["sessions"][0]["state"] == "waiting"


def test_settings_that_cannot_be_read_do_not_end_the_loop(pair: Live) -> None:
    steps = [{"until": {"mail_type": "status"}}, {"edit": {"path": "m.txt", "text": "{mail.body}"}}, DONE]
    sling(pair, "bee", steps)
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    settings = pair.folder / ".rookery" / "config.local.yaml"
    whole = settings.read_text()
    pair.kill()
    settings.write_text("agents: [broken\n")
    pair.run("daemon", "status")
    pair.run("mail", "check", "--agent", "human")  # starts a daemon that cannot read its settings
    wait_until(lambda: has_daemon(pair.folder) and "the loop" in pair.log(), 30)
    assert value(pair, "SELECT count(*) FROM turns") == 1
    settings.write_text(whole)
    assert pair.run("mail", "send", "bee", "--subject", "News", "--body", "the news").status == 0
    wait_until(lambda: outcome(pair, "bee") == "completed", 60)
    assert (pair.folder / ".rookery/worktrees/bee/m.txt").read_text() == "the news"


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_the_first_person_after_it_hears_that_a_project_was_copied_or_moved(
    pair: Live, tmp_path: Path, how: str
) -> None:
    sling(pair, "bee", [])
    wait_until(lambda: value(pair, "SELECT state FROM sessions") == "waiting", 60)
    assert pair.run("daemon", "stop").status == 0
    pair.close()
    there = Live(tmp_path / "there")
    if how == "copied":
        subprocess.run(["cp", "-r", pair.root, there.root], check=True)
    else:
        os.rename(pair.root, there.root)
    notice = f"this project was {how} from {pair.root}"
    try:
        asked = there.run("status", env={"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": "not a person"})
        assert notice not in asked.err.decode()

        first = there.run("status")

        assert first.status == 0, first
        assert first.err.decode().startswith(f"rook: {notice}"), first
        assert first.err.count(b"\n") == 1
        assert there.run("status").err == b""
        assert there.log().count(notice) == 1
    finally:
        there.close()
        if how == "moved":
            os.rename(there.root, pair.root)
