"""The state that the events tell. Folding them must give what the tables hold; the doctor and the tests compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rookery.db.database import Database
from rookery.events import store as events
from rookery.events.model import Event
from rookery.tasks import store


class Replayed:
    """Tasks, edges and learnings as the events tell them."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.blocked_by: dict[str, set[str]] = {}
        self.learnings: dict[str, dict[str, dict[str, Any]]] = {}
        """By task, then by learning."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replayed) and self._told() == other._told()

    __hash__ = None  # type: ignore[assignment]

    def _told(self) -> tuple[object, ...]:
        edges = {(task, blocker) for task, blockers in self.blocked_by.items() for blocker in blockers}
        kept = {name: one for each in self.learnings.values() for name, one in each.items()}
        return self.tasks, edges, kept

    def forget(self, task_id: str) -> None:
        """A task is deleted, with its edges and learnings."""
        del self.tasks[task_id]
        self.blocked_by.pop(task_id, None)
        self.learnings.pop(task_id, None)
        for blockers in self.blocked_by.values():
            blockers.discard(task_id)


def replay(story: Iterable[Event]) -> Replayed:
    """Fold events, oldest first, into the state that they lead to."""
    state = Replayed()
    owners: dict[str, str] = {}
    for event in story:
        subject, data = event.subject, event.data
        match event.type:
            case "task.created":
                state.tasks[subject] = data["task"]
            case "task.blocked":
                state.blocked_by.setdefault(subject, set()).add(data["blocker_id"])
            case "task.unblocked":
                state.blocked_by[subject].discard(data["blocker_id"])
            case "task.deleted":
                state.forget(subject)
            case "learning.added":
                owners[subject] = data["learning"]["task_id"]
                state.learnings.setdefault(owners[subject], {})[subject] = data["learning"]
            case "learning.deleted":
                del state.learnings[owners[subject]][subject]
            case kind if kind.startswith("task."):
                state.tasks[subject].update(data["set"])
    return state


def stored(db: Database) -> Replayed:
    """The same, as the tables hold it."""
    state = Replayed()
    state.tasks = {task.id: task.as_dict() for task in store.every_task(db)}
    for task_id, blocker_id in store.every_edge(db):
        state.blocked_by.setdefault(task_id, set()).add(blocker_id)
    for learning in store.every_learning(db):
        state.learnings.setdefault(learning.task_id, {})[learning.id] = learning.as_dict()
    return state


def agrees(db: Database) -> bool:
    """True if the events tell the state that is stored."""
    with db.read():
        return replay(events.read(db, kinds=("task", "learning"))) == stored(db)
