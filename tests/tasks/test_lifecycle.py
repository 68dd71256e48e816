"""How finishing goes up the tree, case by case."""

from __future__ import annotations

from conftest import Rook
from rookery.db.database import Database
from rookery.tasks import learning_ops, lifecycle, service, store
from support import AUTHOR, NOW, add, everything, person_at, refusal


def _complete(db: Database, task: str, *learned: str) -> None:
    lifecycle.complete(db, task, AUTHOR, learned=learned)


def _states(db: Database, *tasks: str) -> list[str]:
    return [service.get(db, task).task.state for task in tasks]


def _line(db: Database) -> tuple[str, str, str]:
    epic = add(db)
    task = add(db, parent=epic)
    return epic, task, add(db, parent=task)


def test_the_last_child_finishes_everything_above(db: Database) -> None:
    epic, task, subtask = _line(db)
    _complete(db, subtask, "tabs")
    assert _states(db, epic, task, subtask) == ["COMPLETED"] * 3
    assert [
        (learning.content, learning.source_task_id) for learning in learning_ops.list_learnings(person_at(db), epic)
    ] == [("tabs", subtask)]


def test_a_held_parent_is_left_to_its_holder(db: Database) -> None:
    epic, task, subtask = _line(db)
    with db.write():
        held = store.get(db, task)
        lifecycle.begin(db, held, "start", AUTHOR, assignee="ada", lease_until=None)
    _complete(db, subtask)
    assert _states(db, epic, task, subtask) == ["PENDING", "IN_PROGRESS", "COMPLETED"]


def test_a_parent_that_waits_is_not_finished(db: Database) -> None:
    epic, task, subtask = _line(db)
    blocker = add(db)
    service.block(db, task, [blocker], AUTHOR)
    assert refusal(lambda: _complete(db, subtask)) == "not_ready"
    service.unblock(db, task, [blocker], AUTHOR)
    service.block(db, epic, [add(db, parent=blocker)], AUTHOR)
    before = everything(db)
    assert refusal(lambda: _complete(db, subtask)) == "not_ready"
    assert everything(db) == before


def test_a_cancelled_blocker_still_blocks_and_says_so(db: Database) -> None:
    blocker = add(db)
    task = add(db, blocked_by=(blocker,))
    lifecycle.cancel(db, blocker, AUTHOR)
    assert service.next_ready(db, NOW) is None
    assert service.get(db, task).waits_for == (blocker,)
    assert refusal(lambda: _complete(db, task)) == "not_ready"


def test_where_nothing_got_done_the_parent_stays_open(db: Database) -> None:
    epic, task, subtask = _line(db)
    other = add(db, parent=epic)
    lifecycle.cancel(db, task, AUTHOR)
    assert _states(db, epic, task, subtask) == ["PENDING", "CANCELLED", "CANCELLED"]
    lifecycle.cancel(db, other, AUTHOR)
    assert _states(db, epic, other) == ["PENDING", "CANCELLED"]


def test_a_failed_child_keeps_its_parent_open(db: Database) -> None:
    epic, task, subtask = _line(db)
    lifecycle.fail(db, subtask, AUTHOR, reason="no")
    assert refusal(lambda: _complete(db, task)) == "pending_children"
    lifecycle.reopen(db, subtask, AUTHOR)
    _complete(db, subtask)
    assert _states(db, epic, task) == ["COMPLETED", "COMPLETED"]


def test_reopening_and_finishing_again_hands_nothing_up_twice(db: Database) -> None:
    epic, task, subtask = _line(db)
    for _ in range(3):
        _complete(db, subtask, "tabs", "tabs")
        lifecycle.reopen(db, subtask, AUTHOR)
        assert _states(db, epic, task, subtask) == ["PENDING"] * 3
    assert [len(learning_ops.list_learnings(person_at(db), task_id)) for task_id in (epic, task, subtask)] == [1, 1, 1]
    assert [len(level) for level in service.get(db, subtask).learnings] == [1, 0, 0]


def test_siblings_see_what_was_learned(db: Database) -> None:
    epic = add(db)
    first, second = add(db, parent=epic), add(db, parent=epic)
    _complete(db, first, "tabs")
    assert [learning.content for learning in service.get(db, second).learnings[1]] == ["tabs"]


def test_an_epic_can_fail_and_a_result_can_be_written_again(rook: Rook) -> None:
    epic = rook.json("epic", "create", "Ship").data["id"]
    task = rook.json("task", "create", "Work", "--parent", epic).data["id"]
    assert rook.json("task", "update", task, "--result", "First").data["result"] == "First"
    assert rook.json("task", "update", task, "--result", "-", stdin=b"Second").data["result"] == "Second"
    failed = rook.json("epic", "fail", epic, "--reason", "no money").data
    assert failed["state"] == "FAILED"
    assert rook.json("epic", "fail", task).error["code"] == "invalid_input"


def test_attempts_count_what_comes_after_the_first(rook: Rook) -> None:
    task = rook.json("task", "create", "Work").data
    assert (task["attempts"], task["attempt"]) == (0, 0)
    for number in (1, 2, 3):
        task = rook.json("task", "start", task["id"]).data
        assert (task["attempts"], task["attempt"]) == (number - 1, number)
        refused = rook.json("task", "complete", task["id"], "--attempt", str(number - 1)).error
        assert refused["code"] == "already_claimed"
        rook("task", "release", task["id"])
