"""Checks a whole import before anything is written, and says where it is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, get_type_hints

from rookery.base.clock import is_stamp
from rookery.base.errors import RookError
from rookery.base.ids import LEARNING, TASK, is_id
from rookery.base.text import check_text, check_title, in_words
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

_TYPES = {kind: get_type_hints(kind) for kind in (Task, Learning)}
_IDS = {"parent_id": TASK, "task_id": TASK, "source_task_id": TASK}
_TIMES = ("created_at", "updated_at", "lease_until", "started_at", "completed_at", "archived_at")
_MOST = 2**31 - 1
CONTRADICTORY = "contradictory"
"""Under this name an export lists the tasks that were in a state which no step leads to."""
_HINT = "nothing was imported; repair the file, or export it again"


def check_document(
    document: dict[str, Any], path: str, present: Placed, edges: Iterable[tuple[str, str]], taken: set[str]
) -> tuple[list[tuple[Task, list[str]]], list[Learning]]:
    """The file's tasks, parents first, with their blockers, and its learnings."""
    tasks = [(where, *_task(raw, where)) for where, raw in _records(document, "tasks", path)]
    learnings = [(where, _learning(raw, where)) for where, raw in _records(document, "learnings", path)]
    contradictory = document.get(CONTRADICTORY, [])
    _check(_is_list_of_task_ids(contradictory), f"{path}: {CONTRADICTORY}", "is not a list of ids")
    known = set(contradictory)
    placed: Placed = dict(present)
    for where, task, _ in tasks:
        wrong = "" if task.id in known else contradiction(task)
        _check(not wrong, f"{where}.state", wrong)
        if task.id in placed:
            problem = "is already in the project" if task.id in present else "is there twice"
            raise _wrong(f"{where}.id", f"{task.id} {problem}", "`--clear` replaces what is there")
        placed[task.id] = (task.parent_id, task.state)
    for where, task, blockers in tasks:
        _check_place(task, blockers, placed, where)
    _check_order(path, placed, [*edges, *((task.id, blocker) for _, task, blockers in tasks for blocker in blockers)])
    for where, learning in learnings:
        _check(learning.id not in taken, f"{where}.id", f"{learning.id} already exists")
        _check(learning.task_id in placed, f"{where}.task_id", f"no task {learning.task_id}")
        taken.add(learning.id)
    tasks.sort(key=lambda entry: (len(_line(entry[1].id, placed) or []), entry[1].id))
    return [(task, blockers) for _, task, blockers in tasks], [learning for _, learning in learnings]


def _records(document: dict[str, Any], name: str, path: str) -> Iterator[tuple[str, Any]]:
    """The records of that kind, each with where it stands."""
    records = document.get(name)
    if not isinstance(records, list):
        raise _wrong(f"{path}: {name}", "is not a list")
    for number, raw in enumerate(records):
        yield f"{path}: {name}[{number}]", raw


def _task(raw: Any, where: str) -> tuple[Task, list[str]]:
    _check_fields(Task, raw, where, TASK, "blocked_by")
    _check(raw["state"] in STATES, f"{where}.state", f"{raw['state']!r} is no state")
    is_open = raw["archived_at"] is not None and raw["state"] not in FINISHED
    _check(not is_open, f"{where}.archived_at", f"is set, and the task is {raw['state']}")
    _check(_is_list_of_task_ids(raw["blocked_by"]), f"{where}.blocked_by", "is not a list of task ids")
    try:
        check_title(raw["title"])
        check_priority(raw["priority"])
    except RookError as error:
        raise _wrong(where, error.message) from error
    return Task(**{name: raw[name] for name in Task.field_names()}), raw["blocked_by"]


def _learning(raw: Any, where: str) -> Learning:
    _check_fields(Learning, raw, where, LEARNING)
    _check(bool(raw["content"].strip()), f"{where}.content", "is empty")
    return Learning(**raw)


def _check_fields(kind: type[Task] | type[Learning], raw: Any, where: str, prefix: str, *more: str) -> None:
    """The object has the fields of the record, and more; each has the type and the form of its field."""
    _check(isinstance(raw, dict), where, "is not an object")
    wanted = {*kind.field_names(), *more}
    missing, unknown = wanted - raw.keys(), raw.keys() - wanted
    _check(not missing, where, f"lacks {', '.join(sorted(missing))}")
    _check(not unknown, where, f"has unknown {', '.join(sorted(unknown))}")
    for name in kind.field_names():
        value, hint = raw[name], _TYPES[kind][name]
        if value is None and hint == str | None:
            continue
        if hint is int:
            fits = type(value) is int and 0 <= value <= _MOST
            _check(fits, f"{where}.{name}", "is not a whole number")
            continue
        _check(isinstance(value, str), f"{where}.{name}", "is not text")
        _check(name not in _TIMES or is_stamp(value), f"{where}.{name}", "is not a time")
        id_kind = prefix if name == "id" else _IDS.get(name)
        _check(id_kind is None or is_id(id_kind, value), f"{where}.{name}", f"{value!r} is no {id_kind} id")
        try:
            check_text(name, value)
        except RookError as error:
            raise _wrong(where, error.message) from error


def _check_place(task: Task, blockers: list[str], placed: Placed, where: str) -> None:
    _check(task.parent_id is None or task.parent_id in placed, f"{where}.parent_id", f"no task {task.parent_id}")
    line = _line(task.id, placed)
    _check(line is not None, f"{where}.parent_id", "the task is its own ancestor")
    ancestors = (line or [])[1:]
    depth = len(ancestors)
    _check(depth <= MAX_DEPTH, f"{where}.parent_id", f"is {depth} levels deep, and {MAX_DEPTH} is the most")
    for ancestor in ancestors:
        state = placed[ancestor][1]
        is_closed = state in FINISHED and task.state not in FINISHED
        _check(
            not is_closed, f"{where}.state", f"is {in_words(task.state)} under {ancestor}, which is {in_words(state)}"
        )
    for blocker in blockers:
        _check(blocker in placed, f"{where}.blocked_by", f"no task {blocker}")
        is_kin = blocker in ancestors or task.id in (_line(blocker, placed) or [])
        _check(not is_kin, f"{where}.blocked_by", f"{blocker} is above or under it, or the task itself")


def _check_order(path: str, placed: Placed, edges: list[tuple[str, str]]) -> None:
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
    """A task and its ancestors; None if they form a circle."""
    line: list[str] = []
    current: str | None = task_id
    while current is not None and current in placed:
        if current in line:
            return None
        line.append(current)
        current = placed[current][0]
    return line


def _is_list_of_task_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and is_id(TASK, item) for item in value)


def _check(holds: bool, where: str, wrong: str) -> None:
    if not holds:
        raise _wrong(where, wrong)


def _wrong(where: str, wrong: str, hint: str = _HINT) -> ImportInvalid:
    return ImportInvalid(f"{where}: {wrong}", hint=hint)
