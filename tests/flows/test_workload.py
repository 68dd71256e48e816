"""Whether a loop is wanted, found out by a few queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rows import Agent
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.flows.workload import is_anything_alive
from rookery.sessions import journal


@pytest.mark.parametrize(
    ("mode", "state", "is_alive"),
    [
        ("tmux", "waiting", True),
        ("tmux", "ended", False),
        ("headless", "waiting", False),
        ("headless", "booting", True),
        ("headless", "working", True),
    ],
)
def test_an_agent_that_waits_wants_one_only_if_its_program_may_end(
    project: Path, mode: str, state: str, is_alive: bool
) -> None:
    db = Database.open(database_path(str(project)))
    Agent(project, "bee")
    with db.write():
        db.execute("UPDATE sessions SET mode = ?, state = ?, swept_at = '', runner_pid = NULL", (mode, state))
    assert is_anything_alive(str(project), db) is is_alive
    db.close()


def test_a_job_wants_one_also_while_it_runs(project: Path) -> None:
    db = Database.open(database_path(str(project)))
    assert not is_anything_alive(str(project), db)
    (Path(journal.make_folder(str(project))) / "gate-1.journal").touch()
    assert journal.jobs(str(project))
    assert is_anything_alive(str(project), db)
    db.close()
