"""What follows from a landing for tasks: done means landed, and what is taken back is open again."""

from __future__ import annotations

from rookery.agents import store as agents
from rookery.base.errors import Refused
from rookery.config.environ import HUMAN
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, COMPLETED, IN_PROGRESS, NEEDS_REBASE, PENDING_REVIEW
from rookery.tasks.store import Author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.merge.desk import Desk
    from rookery.merge.model import Entry


def complete_task(desk: Desk, entry: Entry) -> str:
    """Within the landing's transaction: finish the task whose work is now on the base, or say why it stays open."""
    db = desk.db
    task = tasks.get_many(db, [entry.task_id]).get(entry.task_id) if entry.task_id else None
    if task is None or task.is_finished:
        return ""
    author = Author(desk.actor, desk.now())
    if task.state == IN_PROGRESS and task.assignee is not None and agents.living(db, task.assignee) is not None:
        return f"{task.assignee} is still at work on {task.id}"
    if task.state in (PENDING_REVIEW, NEEDS_REBASE):
        task = tasks.change(db, task, "task.approved", author, state=APPROVED, commit=entry.tip)
    try:
        lifecycle.complete(db, task.id, author, agent=HUMAN, result=task.result, commit=entry.tip)
    except Refused as error:
        return error.message
    return ""


def reopen_task(desk: Desk, entry: Entry) -> None:
    """Within the transaction that takes a landing back: its task is to be done again."""
    task = tasks.get_many(desk.db, [entry.task_id]).get(entry.task_id) if entry.task_id else None
    if task is not None and task.state == COMPLETED:
        lifecycle.reopen(desk.db, task.id, Author(desk.actor, desk.now()))
