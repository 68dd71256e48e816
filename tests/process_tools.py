"""What tests of real processes share: waiting with a deadline, and a mark that finds whatever a test left running."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rookery.base.errors import RookError
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes import holder
from rookery.processes.proctree import Identity, end_tree, identify, marked
from rookery.terminal.tmux import Tmux, socket_path
from support import wait_until as wait_until


class Mark:
    """A variable that everything a test starts carries."""

    name = "ROOKERY_SESSION"

    def __init__(self, value: str) -> None:
        self.value = value
        self.pair = (self.name, value)
        self.env = {**os.environ, self.name: value}

    def carriers(self) -> list[Identity]:
        """Everything alive that the test started."""
        return marked(*self.pair)


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> Iterator[Mark]:
    """A mark of this test's own; the test fails if anything that carries it is left at the end."""
    own = Mark(f"{request.node.name}-{os.getpid()}-{time.monotonic_ns()}".replace(" ", "_"))
    yield own
    left = own.carriers()
    end_tree(None, own.pair, 0)
    assert left == []


def written_pid(path: Path) -> Identity:
    """The process that writes its number into the file, once it has."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    process = identify(int(path.read_text()))
    assert process is not None
    return process


def end_agents(project: Path) -> None:
    """End everything that agents of a project still run."""
    path = database_path(str(project))
    if not os.path.exists(path):
        return
    try:
        db = Database.open(path)
        try:
            sessions = db.all("SELECT runner_pid, runner_start FROM sessions")
        finally:
            db.close()
    except RookError:  # a test has broken it
        return
    for pid, start in sessions:
        if pid not in (None, os.getpid()):
            end_tree(holder.read(pid, start).identity, None, 0)
    if sessions:
        Tmux(socket_path(str(project))).kill_server()
        end_tree(None, ("ROOKERY_ROOT", str(project)), 0)


class Rest(NamedTuple):
    """How often the threads of processes have gone to sleep so far, and how long they have computed, in seconds."""

    sleeps: int
    seconds: float

    @classmethod
    def of(cls, pids: Iterable[int]) -> Rest:
        """The counts of the processes now."""
        tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
        lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
        sleeps = [line for line in lines if line.startswith("voluntary_ctxt_switches")]
        nanos = [int((task / "schedstat").read_text().split()[0]) for task in tasks]
        return cls(sum(int(line.split()[1]) for line in sleeps), sum(nanos) / 1e9)


def has_stirred(pids: Iterable[int], before: Rest) -> bool:
    """True if one of the processes has done something since then, or has ended."""
    try:
        return Rest.of(pids) != before
    except OSError:
        return True


def is_at_rest(pids: Iterable[int], wakes: int = 0) -> bool:
    """True if the processes do nothing for a while, or no more than wake up so often."""
    known = list(pids)
    before = Rest.of(known)
    time.sleep(1.5)  # what looks by the clock does so within this time
    after = Rest.of(known)
    return after.sleeps - before.sleeps <= wakes and after.seconds - before.seconds < 0.03


def copy_live(source: Path, target: Path) -> None:
    """Copy a project in which agents are at work: again, if a file of theirs went while it was copied."""

    def is_copied() -> bool:
        shutil.rmtree(target, ignore_errors=True)
        return subprocess.run(["cp", "-a", str(source), str(target)], check=False).returncode == 0

    wait_until(is_copied)
