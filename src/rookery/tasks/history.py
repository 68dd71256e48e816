"""The state that the events lead to. It must equal what the tables hold; the doctor and the tests compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rookery.db.database import Database
from rookery.events import store as events
from rookery.events.model import Event
from rookery.tasks import store


@dataclass(frozen=True, slots=True)
class State:
    """All tasks, edges and learnings."""

    tasks: dict[str, dict[str, Any]]
    blocked_by: dict[str, set[str]]
    learnings: dict[str, dict[str, dict[str, Any]]]
    """By task, then by learning."""


def replay(history: Iterable[Event]) -> State:
    """Fold events, oldest first, into the state that they lead to."""
    tasks: dict[str, dict[str, Any]] = {}
    blocked_by: dict[str, set[str]] = {}
    learnings: dict[str, dict[str, dict[str, Any]]] = {}
    owners: dict[str, str] = {}
    for event in history:
        subject, data = event.subject, event.data
        match event.type:
            case "task.created":
                tasks[subject] = data["task"]
            case "task.blocked":
                blocked_by.setdefault(subject, set()).add(data["blocker_id"])
            case "task.unblocked":
                blocked_by[subject].discard(data["blocker_id"])
            case "task.deleted":
                del tasks[subject]
                blocked_by.pop(subject, None)
                learnings.pop(subject, None)
                for blockers in blocked_by.values():
                    blockers.discard(subject)
            case "learning.added":
                owners[subject] = data["learning"]["task_id"]
                learnings.setdefault(owners[subject], {})[subject] = data["learning"]
            case "learning.deleted":
                del learnings[owners[subject]][subject]
            case kind if kind.startswith("task."):
                tasks[subject].update(data["set"])
    return State(
        tasks,
        {task_id: blockers for task_id, blockers in blocked_by.items() if blockers},
        {task_id: entries for task_id, entries in learnings.items() if entries},
    )


def stored(db: Database) -> State:
    """The same, as the tables hold it."""
    state = State({task.id: task.as_dict() for task in store.every_task(db)}, {}, {})
    for task_id, blocker_id in store.every_edge(db):
        state.blocked_by.setdefault(task_id, set()).add(blocker_id)
    for learning in store.every_learning(db):
        state.learnings.setdefault(learning.task_id, {})[learning.id] = learning.as_dict()
    return state


def agrees(db: Database) -> bool:
    """True if the events lead to the state that is stored."""
    with db.read():
        return replay(events.read(db, kinds=("task", "learning"))) == stored(db)
