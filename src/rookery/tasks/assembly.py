"""The one function that puts a task together with its context chain, learnings and edges, for every interface."""

from __future__ import annotations

from collections.abc import Sequence

from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import MAX_DEPTH, Learning, Task, TaskView
from rookery.tasks.scope import store as scope_store


def assemble(db: Database, tasks: Sequence[Task]) -> list[TaskView]:
    """The tasks with all that follows from their places; a handful of queries, however many they are."""
    known = {task.id: task for task in tasks}
    for _ in range(MAX_DEPTH):
        known |= store.get_many(db, {task.parent_id for task in known.values() if task.parent_id} - known.keys())
    lines = {task.id: _line(known, task) for task in tasks}
    involved = {member.id for line in lines.values() for member in line}
    blockers = store.blockers(db, involved)
    learnings = store.learnings(db, involved)
    blocks = store.blocked(db, lines)
    outside = scope_store.explained(db, {task.branch for task in tasks if task.branch is not None})
    return [
        TaskView(  # by position, as rows are: one is made for every task of every list
            task,
            len(line) - 1,
            line[1:],
            _inherited(learnings, line) if learnings else ((), (), ()),
            tuple(blockers.get(task.id, ())),
            tuple(blocks.get(task.id, ())),
            _waits_for(blockers, line) if blockers else (),
            outside.get(task.branch or "", ()),
        )
        for task, line in ((task, lines[task.id]) for task in tasks)
    ]


def assemble_one(db: Database, task: Task) -> TaskView:
    """One task with all that follows from its place."""
    return assemble(db, [task])[0]


def _line(known: dict[str, Task], task: Task) -> tuple[Task, ...]:
    line = [task]
    while line[-1].parent_id in known:  # another process may just have deleted what is above
        line.append(known[line[-1].parent_id])
    return tuple(line)


def _waits_for(blockers: dict[str, dict[str, bool]], line: tuple[Task, ...]) -> tuple[str, ...]:
    """The open blockers of a task and of everything above it, each once."""
    known = (blockers.get(task.id, {}) for task in line)
    return tuple(dict.fromkeys(blocker for entry in known for blocker, is_open in entry.items() if is_open))


def _inherited(learnings: dict[str, list[Learning]], line: tuple[Task, ...]) -> tuple[tuple[Learning, ...], ...]:
    """Own, parent's, epic's. What went up from a task is not repeated further up."""
    seen: set[tuple[str, str]] = set()
    levels: list[tuple[Learning, ...]] = []
    for task in line:
        own = {(entry.content, entry.source_task_id or task.id): entry for entry in learnings.get(task.id, ())}
        levels.append(tuple(entry for key, entry in own.items() if key not in seen))
        seen |= own.keys()
    return (*levels, (), ())[:3]
