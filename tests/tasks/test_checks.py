"""What the doctor says of tasks in states that no step leads to."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Rook
from rookery.base.ids import TASK, new_id
from rookery.db.database import Database
from rookery.tasks import lifecycle, store
from support import AUTHOR, add


def _states(rook: Rook) -> list[dict[str, Any]]:
    checks = rook.json("doctor").data["checks"]
    return [check for check in checks if (check["category"], check["name"]) == ("tasks", "states")]


@pytest.mark.parametrize(
    ("state", "problem", "way_out"),
    [
        ("IN_PROGRESS", "is in progress, and no agent holds it", "release"),
        ("APPROVED", "is approved, and has no branch", "complete"),
    ],
)
def test_the_doctor_reports_a_state_that_no_step_leads_to(rook: Rook, state: str, problem: str, way_out: str) -> None:
    db = rook.open()
    task = store.get(db, add(db))
    assert [check["status"] for check in _states(rook)] == ["ok"]
    odd = task.replace(id=new_id(TASK), state=state)
    with db.write():
        store.insert(db, odd, AUTHOR)
    db.close()
    [check] = _states(rook)
    assert (check["status"], check["message"]) == ("warning", f"{odd.id} {problem}")
    assert f"rook task {way_out} {odd.id}" in check["hint"]
    assert rook("task", way_out, odd.id).status == 0
    assert [check["status"] for check in _states(rook)] == ["ok"]


def test_a_step_alone_says_which_state_follows(db: Database) -> None:
    task = store.get(db, add(db))
    with pytest.raises(ValueError, match="step"), db.write():
        store.take_step(db, task, "claim", AUTHOR, assignee="bee", state="COMPLETED")
    assert store.get(db, task.id).state == "PENDING"
    with db.write():
        assert lifecycle.begin(db, task, "claim", AUTHOR, assignee="bee").state == "IN_PROGRESS"
