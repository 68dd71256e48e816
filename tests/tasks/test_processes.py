"""Many processes at once on one database, and what a kill leaves behind."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.db.database import Database
from rookery.tasks import lifecycle, service
from rookery.tasks.history import agrees
from rookery.tasks.store import Author
from support import AUTHOR, NOW, add, everything, refusal, run_together, start_python, wait_until

_CLAIM = """
import sys, time
from rookery.base.clock import stamp
from rookery.db.database import Database
from rookery.tasks import lifecycle
from rookery.tasks.store import Author
db = Database.open(sys.argv[1])
print("here", flush=True)
sys.stdin.readline()
while True:
    now = time.time()
    view = lifecycle.claim(db, Author(sys.argv[2], stamp(now)), lease=600, clock=now)
    if view is None:
        break
    print(view.task.id)
"""

_WRITE = """
import sys
from rookery.db.database import Database
from rookery.tasks import learnings, service
from rookery.tasks.store import Author
db = Database.open(sys.argv[1])
author = Author(sys.argv[2], "2026-01-31T12:00:00.000Z")
print("here", flush=True)
sys.stdin.readline()
for number in range(10):
    task = service.create(db, service.Draft(f"{sys.argv[2]} {number}", parent=sys.argv[3]), author).task.id
    learnings.add(db, task, "x", author)
"""

_LIVE = """
import os, random, sys
from rookery.base.errors import RookError
from rookery.db.database import Database
from rookery.tasks import learnings, lifecycle, service, transfer
from rookery.tasks.store import Author
db = Database.open(sys.argv[1])
author = Author("worker", "2026-01-31T12:00:00.000Z")
file = sys.argv[1] + f".{os.getpid()}.json"
quiet = lambda label, total: lambda done: None
def live():
    epic = service.create(db, service.Draft("epic"), author).task.id
    one = service.create(db, service.Draft("one", parent=epic), author).task.id
    two = service.create(db, service.Draft("two", parent=epic, blocked_by=(one,)), author).task.id
    for task in (one, two):
        lifecycle.complete(db, task, author.replace(name="worker"), learned=["a", "b"])
    if random.random() < 0.5:
        service.delete(db, epic, author)
    if random.random() < 0.3:
        transfer.export_file(db, file, author.now)
        transfer.import_file(db, file, author, clear=True, backups=os.path.dirname(file), progress=quiet)
print("here", flush=True)
while True:
    try:
        live()
    except RookError:
        pass  # another one cleared everything
"""


def test_no_agent_gets_the_task_of_another(db: Database) -> None:
    epics = [add(db, priority=n) for n in (1, 2, 3, 4)]
    wanted = {add(db, parent=epics[n % 4]) for n in range(40)}
    outputs = run_together([start_python(_CLAIM, db.path, f"agent{n}") for n in range(8)])
    taken = [task for one in outputs for task in one.split()]
    assert len(taken) == len(set(taken)) == 40
    assert set(taken) == wanted
    holders = {f"agent{n}": set(one.split()) for n, one in enumerate(outputs)}
    assert all(task in holders[agent] for task, agent in db.all("SELECT id, assignee FROM tasks WHERE assignee <> ''"))
    assert agrees(db)


def test_sixteen_writers_wait_for_each_other(db: Database) -> None:
    epic = add(db)
    run_together([start_python(_WRITE, db.path, f"writer{n}", epic) for n in range(16)])
    assert service.progress(db, epic, NOW).total == 160
    assert db.value("SELECT count(*) FROM learnings") == 160
    assert agrees(db)


_T0 = 1_769_860_800.0
_LATER = "2026-01-31T12:10:00.000Z"
_late: dict[str, Callable[[Database, str, Author], object]] = {
    "complete": lambda db, task, author: lifecycle.complete(db, task, author.replace(name="ada"), result="late"),
    "complete by attempt": lambda db, task, author: lifecycle.complete(
        db, task, author.replace(name="human"), attempt=1
    ),
    "renew": lambda db, task, author: lifecycle.renew(db, task, author.replace(name="ada"), lease=60, clock=_T0),
    "release": lambda db, task, author: lifecycle.release(db, task, author.replace(name="ada")),
    "fail": lambda db, task, author: lifecycle.fail(db, task, author.replace(name="ada")),
}


@pytest.mark.parametrize("step", _late)
def test_who_lost_the_lease_is_fenced(db: Database, step: str) -> None:
    task = add(db)
    first = lifecycle.claim(db, AUTHOR.replace(name="ada"), lease=60, clock=_T0)
    assert first is not None
    assert lifecycle.claim(db, AUTHOR.replace(name="bob"), lease=60, clock=_T0) is None
    bob = Author("bob", _LATER)
    second = lifecycle.claim(db, bob, lease=60, clock=_T0 + 600)
    assert second is not None
    assert (second.task.id, second.task.assignee, second.task.attempts) == (task, "bob", 2)
    before = everything(db)
    assert refusal(lambda: _late[step](db, task, Author("ada", _LATER))) == "already_claimed"
    assert everything(db) == before
    done = lifecycle.complete(db, task, bob, attempt=2)
    assert done.task.state == "COMPLETED"


def test_a_lapsed_lease_is_still_its_owners_while_no_other_agent_took_it(db: Database) -> None:
    task = add(db)
    lifecycle.claim(db, AUTHOR.replace(name="ada"), lease=60, clock=_T0)
    late = Author("ada", _LATER)
    lifecycle.renew(db, task, late.replace(name="ada"), lease=60, clock=_T0 + 600)
    assert lifecycle.claim(db, late.replace(name="bob"), lease=60, clock=_T0 + 600) is None
    assert lifecycle.complete(db, task, late.replace(name="ada"), attempt=1).task.state == "COMPLETED"


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_whole_state(tmp_path: Path) -> None:
    path = str(tmp_path / "rookery.db")
    Database.create(path).close()
    moments = random.Random()
    deadline = time.monotonic() + 4
    kills = 0
    while time.monotonic() < deadline:
        children = [start_python(_LIVE, path) for _ in range(2)]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == b"here\n"
        until = time.monotonic() + moments.uniform(0.005, 0.25)
        wait_until(lambda until=until: time.monotonic() >= until)  # type: ignore[misc]
        for child in children:
            child.send_signal(signal.SIGKILL)
            _, err = child.communicate()
            assert err == b"", err.decode()
            kills += 1
        _assert_whole(path)
    assert kills >= 4


def _assert_whole(path: str) -> None:
    db = Database.open(path)
    assert db.all("PRAGMA integrity_check") == [("ok",)]
    assert db.all("PRAGMA foreign_key_check") == []
    assert agrees(db)
    for index in ("tasks_search", "learnings_search"):
        db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
    # A completed task has handed its learnings up, and one that is blocked has its edge.
    assert not db.all(
        "SELECT t.id FROM tasks t WHERE t.state = 'COMPLETED' AND t.parent_id IS NOT NULL "
        "AND (SELECT count(*) FROM learnings l WHERE l.source_task_id = t.id AND l.task_id = t.parent_id) <> 2"
    )
    assert not db.all("SELECT id FROM tasks WHERE title = 'two' AND id NOT IN (SELECT task_id FROM task_blockers)")
    db.close()


_CREATE = """
import sys
from rookery.db.database import Database
print("here", flush=True)
Database.create(sys.argv[1])
"""


def test_a_kill_while_the_database_is_made(tmp_path: Path) -> None:
    moments = random.Random()
    for number in range(12):
        path = tmp_path / f"{number}.db"
        child = start_python(_CREATE, str(path))
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        until = time.monotonic() + moments.uniform(0, 0.03)
        wait_until(lambda until=until: time.monotonic() >= until)  # type: ignore[misc]
        child.send_signal(signal.SIGKILL)
        child.communicate()
        db = Database.create(str(path))
        add(db)
        assert db.value("PRAGMA integrity_check") == "ok"
        db.close()
