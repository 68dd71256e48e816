"""Mail between processes: many at once, killed in the middle, waited for; and what a cold command loads."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest

from rookery.mail import store
from support import run_together, wait_until

from .hive import Agent, Hive

_SEND = """
import sys
from rookery.config.environ import read_environ
from rookery.db.database import Database
from rookery.mail import service
from rookery.mail.model import Draft
from rookery.ops.caller import prove
db = Database.open(sys.argv[1])
caller = prove(read_environ(), lambda: db)
print("here", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    draft = Draft((sys.argv[2],), f"number {number}", "x" * 2_000)
    print(service.send(db, caller, draft, "2026-01-31T12:00:00.000Z").id, flush=True)
"""

_WAIT = """
import sys, time
from rookery.config.project import root_of
from rookery.db.database import Database
from rookery.mail import ops
from rookery.ops.context import Context
ctx = Context.at(root_of(sys.argv[1]), Database.open(sys.argv[1]))
assert ctx.caller
print("here", flush=True)
found = ops.wait(ctx, timeout=sys.argv[2])
print(time.time(), found and found.subject)
"""


def test_nothing_is_lost_when_eight_processes_send_at_once(hive: Hive, bee: Agent, queen: Agent) -> None:
    env = bee.variables()
    outputs = run_together([hive.start_python(_SEND, "queen", "50", env=env) for _ in range(8)])
    printed = sorted(line for out in outputs for line in out.split())
    assert len(printed) == 400
    assert sorted(message.id for message in hive.inbox("queen")) == printed
    assert sorted(event["id"] for event in hive.events("mail.sent")) == printed


@pytest.mark.slow
def test_eight_commands_at_once_are_all_accepted(hive: Hive, bee: Agent, queen: Agent) -> None:
    script = """
import subprocess, sys
print("here", flush=True)
sys.stdin.readline()
for number in range(3):
    subprocess.run([sys.executable, "-m", "rookery", "mail", "send", "queen", "--subject", str(number)], check=True)
"""
    run_together([hive.start_python(script, env=bee.variables()) for _ in range(8)])
    assert len(hive.inbox("queen")) == 24


def test_a_killed_sender_leaves_whole_messages_only(hive: Hive, bee: Agent, drone: Agent, queen: Agent) -> None:
    for round_ in range(1, 6):
        child = hive.start_python(_SEND, "@all", "100000", env=bee.variables())
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
        lines = [child.stdout.readline() for _ in range(1 + round_)]
        child.send_signal(signal.SIGKILL)
        lines += [line for line in child.communicate(timeout=60)[0].splitlines() if len(line) == 30]
        assert child.returncode == -signal.SIGKILL
        kept = {message.id for message in store.select(hive.db, store.Query())}
        assert {line.decode().strip() for line in lines[1:]} <= kept
    sizes = hive.db.all("SELECT count(*), count(DISTINCT recipient) FROM messages GROUP BY thread_id")
    assert set(sizes) == {(2, 2)}
    assert len(hive.events("mail.sent")) == hive.db.value("SELECT count(*) FROM messages")
    assert hive.db.value("PRAGMA integrity_check") == "ok"


def test_waiting_wakes_within_a_second_of_a_send(hive: Hive, bee: Agent) -> None:
    delays = []
    for attempt in range(3):
        child = hive.start_python(_WAIT, "60", env=bee.variables())
        _waits(child)
        sent_at = time.time()
        hive.send(None, "bee", f"number {attempt}")
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        woken_at, subject = out.decode().split(" ", 1)
        assert subject == f"number {attempt}\n"
        delays.append(float(woken_at) - sent_at)
    assert min(delays) < 1


@pytest.mark.slow
def test_waiting_costs_next_to_nothing(hive: Hive, bee: Agent) -> None:
    child = hive.start_python(_WAIT, "60", env=bee.variables())
    _waits(child)
    try:
        before = _cpu_ticks(child.pid)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 1)
        assert _cpu_ticks(child.pid) - before <= 5
    finally:
        child.kill()
        child.communicate()


def test_an_ended_agent_waits_no_longer(hive: Hive, bee: Agent) -> None:
    child = hive.start_python(_WAIT, "60", env=bee.variables())
    _waits(child)
    hive.end(bee)
    _, err = child.communicate(timeout=60)
    assert b"ForgedSender" in err


def test_the_wait_command_says_when_the_time_is_up(hive: Hive, bee: Agent) -> None:
    waited = hive.rook("mail", "wait", "--timeout", "0.1s", "--json", as_=bee)
    assert (waited.status, json.loads(waited.out)["data"]) == (1, None)
    waited = hive.rook("mail", "wait", "--timeout", "0.1s")
    assert (waited.status, waited.out) == (1, "No mail came.\n")


def _waits(child: subprocess.Popen[bytes]) -> None:
    """Return once the child waits: it has printed a line, and then slept."""
    assert child.stdout is not None
    assert child.stdout.readline() == b"here\n"
    wait_until(lambda: _state(child.pid) == "S")


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def _cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
