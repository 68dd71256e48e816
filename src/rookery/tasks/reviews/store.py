"""The table of reviews: every step that a task's work took in review, with who, when, the commit and the comment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import in_chunks
from rookery.events.store import publish
from rookery.tasks.model import Task
from rookery.tasks.store import Author

SUBMITTED, APPROVED = "submitted", "approved"
CHANGES_REQUESTED, REBASE_REQUESTED = "changes_requested", "rebase_requested"
_COLUMNS = "task_id, action, branch, commit_id, comment, actor, at"


@dataclass(frozen=True, slots=True)
class ReviewStep(Record):
    """One step of a review: the work was handed in, approved, or sent back."""

    JSON_NAMES = {"actor": "by"}
    task_id: str
    action: str
    branch: str | None
    commit: str | None
    """The tip of the branch at that time."""
    comment: str
    actor: str
    at: str


def add(db: Database, task: Task, action: str, author: Author, *, commit: str | None, comment: str = "") -> None:
    """Keep a step. Its comment stays out of the events."""
    step = ReviewStep(task.id, action, task.branch, commit, comment, author.name, author.now)
    db.execute(f"INSERT INTO reviews ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", step.as_tuple())
    data = {"branch": task.branch, "commit": commit}
    publish(db, f"review.{action}", task.id, data, actor=author.name, at=author.now)


def steps(db: Database, task_id: str) -> list[ReviewStep]:
    """Every step of a task, in order."""
    return [
        ReviewStep(*row) for row in db.all(f"SELECT {_COLUMNS} FROM reviews WHERE task_id = ? ORDER BY seq", (task_id,))
    ]


def last(db: Database, task_id: str) -> ReviewStep | None:
    """The last step of a task, if there was one."""
    row = db.one(f"SELECT {_COLUMNS} FROM reviews WHERE task_id = ? ORDER BY seq DESC LIMIT 1", (task_id,))
    return None if row is None else ReviewStep(*row)


def submitted_at(db: Database, task_ids: Iterable[str]) -> dict[str, str]:
    """When each of some tasks was handed in last."""
    sql = "SELECT task_id, max(at) FROM reviews WHERE action = 'submitted' AND task_id IN (%s) GROUP BY task_id"
    return dict(in_chunks(db, sql, task_ids))
