"""The one function that puts a task together with its context chain, learnings and edges, for every interface."""

from __future__ import annotations

from collections.abc import Sequence

from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import Learning, Task, TaskView


def assemble(db: Database, tasks: Sequence[Task]) -> list[TaskView]:
    """The tasks with all that follows from their places; a handful of queries, however many they are."""
    known = {task.id: task for task in tasks}
    if len(tasks) == 1:
        known |= {task.id: task for task in store.ancestors(db, tasks[0])}
    else:
        for _ in range(2):
            missing = {task.parent_id for task in known.values() if task.parent_id and task.parent_id not in known}
            known |= store.get_many(db, missing)
    lines = {task.id: _line(known, task) for task in tasks}
    involved = {each.id for line in lines.values() for each in line}
    blockers = store.blockers(db, involved)
    learnings = store.learnings(db, involved)
    blocks = store.blocked(db, lines)
    return [
        TaskView(  # by position, as rows are: one is made for every task of every list
            task,
            len(line) - 1,
            line[1:],
            _inherited(learnings, line) if learnings else ((), (), ()),
            tuple(blockers.get(task.id, ())),
            tuple(blocks.get(task.id, ())),
            _waits_for(blockers, line) if blockers else (),
        )
        for task, line in ((task, lines[task.id]) for task in tasks)
    ]


def assemble_one(db: Database, task: Task) -> TaskView:
    """One task with all that follows from its place."""
    return assemble(db, [task])[0]


def _line(known: dict[str, Task], task: Task) -> tuple[Task, ...]:
    line = [task]
    while line[-1].parent_id in known:  # somebody may have deleted what is above, just now
        line.append(known[line[-1].parent_id])
    return tuple(line)


def _waits_for(blockers: dict[str, dict[str, bool]], line: tuple[Task, ...]) -> tuple[str, ...]:
    """The open blockers of a task and of everything above it, each once."""
    return tuple(dict.fromkeys(each for one in line for each, is_open in blockers.get(one.id, {}).items() if is_open))


def _inherited(learnings: dict[str, list[Learning]], line: tuple[Task, ...]) -> tuple[tuple[Learning, ...], ...]:
    """Own, parent's, epic's. What went up from a task is not told to it again further up."""
    told: set[tuple[str, str]] = set()
    levels: list[tuple[Learning, ...]] = []
    for task in line:
        fresh = {(each.content, each.source_task_id or task.id): each for each in learnings.get(task.id, ())}
        levels.append(tuple(each for key, each in fresh.items() if key not in told))
        told |= fresh.keys()
    return (*levels, (), ())[:3]
