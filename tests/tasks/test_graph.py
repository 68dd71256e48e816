"""Circles and depth, one by one. The random steps of `test_stateful` rarely build the long ones."""

from __future__ import annotations

from itertools import pairwise

from rookery.db.database import Database
from rookery.tasks import service
from support import AUTHOR, add, everything, refusal


def _block(db: Database, task: str, *blockers: str) -> None:
    service.block(db, task, blockers, AUTHOR)


def _refused_block(db: Database, task: str, *blockers: str) -> str:
    before = everything(db)
    code = refusal(lambda: _block(db, task, *blockers))
    assert everything(db) == before
    return code


def _refused_move(db: Database, task: str, parent: str) -> str:
    before = everything(db)
    code = refusal(lambda: service.update(db, task, AUTHOR, {"priority": 1}, parent=parent))
    assert everything(db) == before
    return code


def test_direct_and_long_circles(db: Database) -> None:
    chain = [add(db) for _ in range(30)]
    for one, other in pairwise(chain):
        _block(db, one, other)
    assert _refused_block(db, chain[1], chain[0]) == "blocker_cycle"
    assert _refused_block(db, chain[-1], chain[0]) == "blocker_cycle"
    assert _refused_block(db, chain[5], chain[5]) == "blocker_cycle"
    _block(db, chain[0], chain[-1])


def test_a_circle_through_parents(db: Database) -> None:
    x, y = add(db, "x"), add(db, "y")
    x_child, y_child = add(db, "x child", x), add(db, "y child", y)
    _block(db, x_child, y)
    assert _refused_block(db, y_child, x) == "blocker_cycle"
    assert _refused_block(db, y_child, x_child) == "blocker_cycle"
    assert _refused_block(db, y, x_child) == "blocker_cycle"
    assert _refused_block(db, y, x) == "blocker_cycle"


def test_a_task_and_its_kin_cannot_wait_for_each_other(db: Database) -> None:
    epic = add(db)
    task = add(db, parent=epic)
    subtask = add(db, parent=task)
    for one, other in ((epic, task), (task, epic), (subtask, epic), (epic, subtask)):
        assert _refused_block(db, one, other) == "invalid_relation"


def test_one_bad_blocker_refuses_all(db: Database) -> None:
    first, second = add(db), add(db)
    assert _refused_block(db, first, second, first) == "blocker_cycle"


def test_a_move_under_what_waits_for_it_through_others(db: Database) -> None:
    parent, between, task = add(db), add(db), add(db)
    _block(db, parent, between)
    _block(db, between, task)
    assert _refused_move(db, task, parent) == "blocker_cycle"


def test_a_move_under_what_it_waits_for_through_others(db: Database) -> None:
    parent, other, task = add(db), add(db), add(db)
    _block(db, add(db, parent=task), other)
    _block(db, add(db, parent=other), parent)
    assert _refused_move(db, task, parent) == "blocker_cycle"


def test_a_move_to_a_blocker_or_into_itself(db: Database) -> None:
    task, blocker = add(db), add(db)
    child = add(db, parent=task)
    _block(db, child, blocker)
    assert _refused_move(db, task, blocker) == "invalid_relation"
    assert _refused_move(db, task, task) == "parent_cycle"
    assert _refused_move(db, task, child) == "parent_cycle"


def test_depth_counts_the_height_of_what_is_moved(db: Database) -> None:
    tall = add(db)
    add(db, parent=add(db, parent=tall))
    assert _refused_move(db, tall, add(db)) == "max_depth"
    low = add(db)
    add(db, parent=low)
    epic = add(db)
    task = add(db, parent=epic)
    assert _refused_move(db, low, task) == "max_depth"
    service.update(db, low, AUTHOR, {}, parent=epic)
    subtask = add(db, parent=task)
    assert refusal(lambda: add(db, parent=subtask)) == "max_depth"
