"""Checks a whole import before anything is written, and says where it is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from rookery.base.clock import is_stamp
from rookery.base.errors import RookError
from rookery.base.ids import LEARNING, TASK, is_id
from rookery.base.text import check_text, check_title
from rookery.tasks.graph import BEGIN, FINISH
from rookery.tasks.model import (
    FINISHED,
    MAX_DEPTH,
    STATES,
    ImportInvalid,
    Learning,
    Task,
    check_priority,
    contradiction,
)

Placed = dict[str, tuple[str | None, str]]
"""Parent and state by task id."""

_TEXTS = ("title", "description", "context", "design")
_OPTIONAL_TEXTS = ("result", "assignee", "branch", "commit", "start_commit")
_TIMES = ("created_at", "updated_at")
_OPTIONAL_TIMES = ("lease_until", "started_at", "completed_at", "archived_at")
_MOST = 2**31 - 1
CONTRADICTORY = "contradictory"
"""Under this name an export lists the tasks that were in a state which no step leads to."""
_HINT = "nothing was imported; repair the file, or export it again"


def check_document(
    document: dict[str, Any], path: str, present: Placed, edges: Iterable[tuple[Any, ...]], taken: set[str]
) -> tuple[list[tuple[Task, list[str]]], list[Learning]]:
    """The file's tasks, parents first, with their blockers, and its learnings."""
    tasks = [_task(raw, f"{path}: tasks[{n}]") for n, raw in enumerate(_records(document, "tasks", path))]
    learnings = [
        _learning(raw, f"{path}: learnings[{n}]") for n, raw in enumerate(_records(document, "learnings", path))
    ]
    _check_states(document, [task for task, _ in tasks], path)
    placed: Placed = dict(present)
    for number, (task, _) in enumerate(tasks):
        if task.id in placed:
            known = "is in the project already" if task.id in present else "is there twice"
            raise _wrong(f"{path}: tasks[{number}].id", f"{task.id} {known}", "`--clear` replaces what is there")
        placed[task.id] = (task.parent_id, task.state)
    for number, (task, blockers) in enumerate(tasks):
        _check_place(task, blockers, placed, f"{path}: tasks[{number}]")
    _check_order(path, placed, [*edges, *((task.id, each) for task, blockers in tasks for each in blockers)])
    for number, learning in enumerate(learnings):
        if learning.id in taken:
            raise _wrong(f"{path}: learnings[{number}].id", f"{learning.id} is there already")
        if learning.task_id not in placed:
            raise _wrong(f"{path}: learnings[{number}].task_id", f"no task {learning.task_id}")
        taken.add(learning.id)
    return sorted(tasks, key=lambda entry: (_depth(entry[0].id, placed), entry[0].id)), learnings


def _check_states(document: dict[str, Any], tasks: list[Task], path: str) -> None:
    """No task is in a state which no step leads to, unless the project that was exported had it so."""
    listed = document.get(CONTRADICTORY, [])
    _check(isinstance(listed, list) and all(map(_is_task_id, listed)), f"{path}: {CONTRADICTORY}", "is no list of ids")
    known = set(listed)
    for number, task in enumerate(tasks):
        wrong = "" if task.id in known else contradiction(task)
        _check(not wrong, f"{path}: tasks[{number}].state", wrong)


def _records(document: dict[str, Any], name: str, path: str) -> list[Any]:
    records = document.get(name)
    if not isinstance(records, list):
        raise _wrong(f"{path}: {name}", "is not a list")
    return records


def _task(raw: Any, where: str) -> tuple[Task, list[str]]:
    _check_fields(raw, {*Task.field_names(), "blocked_by"}, where)
    for name in _TEXTS:
        _check(isinstance(raw[name], str), f"{where}.{name}", "is not text")
    for name in _OPTIONAL_TEXTS:
        _check(raw[name] is None or isinstance(raw[name], str), f"{where}.{name}", "is neither text nor null")
    for name in _TIMES:
        _check(isinstance(raw[name], str) and is_stamp(raw[name]), f"{where}.{name}", "is not a time")
    for name in _OPTIONAL_TIMES:
        known = raw[name] is None or (isinstance(raw[name], str) and is_stamp(raw[name]))
        _check(known, f"{where}.{name}", "is neither a time nor null")
    for name in ("priority", "attempts"):
        _check(type(raw[name]) is int and 0 <= raw[name] <= _MOST, f"{where}.{name}", "is not a whole number")
    _check(raw["state"] in STATES, f"{where}.state", f"{raw['state']!r} is no state")
    put_away = raw["archived_at"] is not None and raw["state"] not in FINISHED
    _check(not put_away, f"{where}.archived_at", f"is set, and the task is {raw['state']}")
    _check(_is_task_id(raw["id"]), f"{where}.id", f"{raw['id']!r} is no task id")
    _check(raw["parent_id"] is None or _is_task_id(raw["parent_id"]), f"{where}.parent_id", "is no task id")
    blockers = raw["blocked_by"]
    _check(
        isinstance(blockers, list) and all(map(_is_task_id, blockers)), f"{where}.blocked_by", "is no list of task ids"
    )
    try:
        check_title(raw["title"])
        check_priority(raw["priority"])
        for name in (*_TEXTS[1:], *_OPTIONAL_TEXTS):
            check_text(name, raw[name] or "")
    except RookError as error:
        raise _wrong(where, error.message) from error
    return Task(**{name: raw[name] for name in Task.field_names()}), blockers


def _learning(raw: Any, where: str) -> Learning:
    _check_fields(raw, set(Learning.field_names()), where)
    for name in ("id", "task_id", "content", "created_at"):
        _check(isinstance(raw[name], str), f"{where}.{name}", "is not text")
    _check(is_id(LEARNING, raw["id"]), f"{where}.id", f"{raw['id']!r} is no learning id")
    _check(_is_task_id(raw["task_id"]), f"{where}.task_id", "is no task id")
    source = raw["source_task_id"]
    _check(source is None or _is_task_id(source), f"{where}.source_task_id", "is no task id")
    _check(is_stamp(raw["created_at"]), f"{where}.created_at", "is not a time")
    _check(bool(raw["content"].strip()), f"{where}.content", "is empty")
    try:
        check_text("content", raw["content"])
    except RookError as error:
        raise _wrong(where, error.message) from error
    return Learning(**raw)


def _check_fields(raw: Any, wanted: set[str], where: str) -> None:
    _check(isinstance(raw, dict), where, "is not an object")
    missing, unknown = wanted - raw.keys(), raw.keys() - wanted
    _check(not missing, where, f"lacks {', '.join(sorted(missing))}")
    _check(not unknown, where, f"has unknown {', '.join(sorted(unknown))}")


def _check_place(task: Task, blockers: list[str], placed: Placed, where: str) -> None:
    _check(task.parent_id is None or task.parent_id in placed, f"{where}.parent_id", f"no task {task.parent_id}")
    line = _line(task.id, placed)
    _check(line is not None, f"{where}.parent_id", "the task is its own ancestor")
    above = (line or [])[1:]
    _check(len(above) <= MAX_DEPTH, f"{where}.parent_id", f"is {len(above)} levels deep, and {MAX_DEPTH} is the most")
    for each in above:
        closed = placed[each][1] in FINISHED and task.state not in FINISHED
        _check(not closed, f"{where}.state", f"is {task.state} beneath {each}, which is {placed[each][1]}")
    for blocker in blockers:
        _check(blocker in placed, f"{where}.blocked_by", f"no task {blocker}")
        kin = blocker in above or task.id in (_line(blocker, placed) or [])
        _check(not kin, f"{where}.blocked_by", f"{blocker} is above or beneath it, or the task itself")


def _check_order(path: str, placed: Placed, edges: list[tuple[Any, ...]]) -> None:
    """No waiting in a circle: the same graph of begin and finish as in `graph`, sorted as a whole."""
    sorter: TopologicalSorter[tuple[str, str]] = TopologicalSorter()
    for task_id, (parent_id, _) in placed.items():
        sorter.add((FINISH, task_id), (BEGIN, task_id))
        if parent_id is not None:
            sorter.add((FINISH, parent_id), (FINISH, task_id))
            sorter.add((BEGIN, task_id), (BEGIN, parent_id))
    for task_id, blocker_id in edges:
        sorter.add((BEGIN, task_id), (FINISH, blocker_id))
    try:
        sorter.prepare()
    except CycleError as error:
        circle = dict.fromkeys(task_id for _, task_id in error.args[1])
        raise _wrong(f"{path}: blocked_by", f"these wait for each other: {', '.join(circle)}") from error


def _line(task_id: str, placed: Placed) -> list[str] | None:
    """A task and everything above it; None if that is a circle."""
    line: list[str] = []
    current: str | None = task_id
    while current is not None and current in placed:
        if current in line:
            return None
        line.append(current)
        current = placed[current][0]
    return line


def _depth(task_id: str, placed: Placed) -> int:
    return len(_line(task_id, placed) or [])


def _is_task_id(value: Any) -> bool:
    return isinstance(value, str) and is_id(TASK, value)


def _check(holds: bool, where: str, wrong: str) -> None:
    if not holds:
        raise _wrong(where, wrong)


def _wrong(where: str, wrong: str, hint: str = _HINT) -> ImportInvalid:
    return ImportInvalid(f"{where}: {wrong}", hint=hint)
