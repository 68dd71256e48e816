"""What follows from a landing for tasks: done means landed, and what is taken back is open again."""

from __future__ import annotations

from rookery.agents import store as agents
from rookery.base.errors import Refused
from rookery.config.environ import HUMAN
from rookery.merge import store
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
    if task.state == IN_PROGRESS and task.assignee is not None and agents.living(db, task.assignee) is not None:
        return f"{task.assignee} is still at work on {task.id}"
    return _finish(desk, task.id, entry.tip)


def _finish(desk: Desk, task_id: str, commit: str) -> str:
    """Approve and complete a task; what stands against that, if something does."""
    author = Author(desk.actor, desk.now())
    task = tasks.get(desk.db, task_id)
    if task.state in (PENDING_REVIEW, NEEDS_REBASE):
        tasks.change(desk.db, task, "task.approved", author, state=APPROVED, commit=commit)
    try:
        lifecycle.complete(desk.db, task_id, author, agent=HUMAN, result=task.result, commit=commit)
    except Refused as error:
        return error.message
    return ""


def complete_landed(desk: Desk, base: str) -> None:
    """Finish tasks that were handed over after their work had landed: the base contains it, as git says."""
    rows = desk.db.all(
        "SELECT t.id, t.commit_id, t.branch FROM tasks t WHERE t.state IN (?, ?, ?) AND t.commit_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.task_id = t.id AND (s.state <> 'ended' "
        "OR s.base_commit = t.commit_id))",
        (PENDING_REVIEW, APPROVED, NEEDS_REBASE),
    )
    tip = desk.merging.tip(base) if rows else None
    for task_id, commit, branch in rows:
        if tip is None or not store.has_landed(desk.db, task_id) or not desk.merging.store.contains(commit, tip):
            continue
        with desk.db.write():
            _finish(desk, task_id, commit)
        desk.say(f"{task_id} is completed: {branch or commit[:12]} is on {base}\n")


def reopen_task(desk: Desk, entry: Entry) -> None:
    """Within the transaction that takes a landing back: its task is to be done again."""
    task = tasks.get_many(desk.db, [entry.task_id]).get(entry.task_id) if entry.task_id else None
    if task is not None and task.state == COMPLETED:
        lifecycle.reopen(desk.db, task.id, Author(desk.actor, desk.now()))
