"""The state that the events lead to. It must equal what the tables hold; the doctor and the tests compare."""

from __future__ import annotations

from typing import Any

from rookery.db.database import Database
from rookery.events import store as events
from rookery.tasks import store


def agrees(db: Database) -> bool:
    """True if the events lead to the state that is stored."""
    with db.read():
        stored = (
            {task.id: task.as_dict() for task in store.every_task(db)},
            set(store.every_edge(db)),
            {learning.id: learning.as_dict() for learning in store.every_learning(db)},
        )
        return _replay(db) == stored


def _replay(db: Database) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str]], dict[str, dict[str, Any]]]:
    """Fold all events into the tasks, edges and learnings that they lead to."""
    tasks: dict[str, dict[str, Any]] = {}
    edges: dict[tuple[str, str], int] = {}
    learnings: dict[str, tuple[int, dict[str, Any]]] = {}
    deleted: dict[str, int] = {}
    for event in events.read(db, kinds=("task", "learning")):
        subject, data = event.subject, event.data
        match event.type:
            case "task.created":
                tasks[subject] = data["task"]
            case "task.deleted":
                del tasks[subject]
                deleted[subject] = event.seq
            case "task.blocked":
                edges[subject, data["blocker_id"]] = event.seq
            case "task.unblocked":
                edges.pop((subject, data["blocker_id"]), None)
            case "learning.added":
                learnings[subject] = event.seq, data["learning"]
            case "learning.deleted":
                del learnings[subject]
            case kind if kind.startswith("task."):
                tasks[subject].update(data["set"])

    # What a task had when it was deleted went with it; an import may have brought the task back since.
    return (
        tasks,
        {edge for edge, seq in edges.items() if all(deleted.get(task_id, 0) < seq for task_id in edge)},
        {key: fields for key, (seq, fields) in learnings.items() if deleted.get(fields["task_id"], 0) < seq},
    )
