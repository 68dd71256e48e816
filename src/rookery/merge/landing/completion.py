"""What a landing means for tasks: landed work completes its task, and an undone landing opens it again."""

from __future__ import annotations

from rookery.base.errors import Refused
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing.eligibility import objection
from rookery.merge.landing.history import is_landed
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED as FINISHED
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, CANCELLED, COMPLETED, NEEDS_REBASE, PENDING_REVIEW, Task
from rookery.tasks.store import Author

_HANDED_OVER = (PENDING_REVIEW, APPROVED, NEEDS_REBASE)


def complete_task(merger: Merger, entry: Entry) -> str:
    """Within the landing's transaction: complete the task whose work is now on the base.

    Returns a remark for the entry: why the task stays open, or what it should have waited for. Usually empty.
    """
    db = merger.ctx.db
    task = tasks.existing(db, entry.task_id)
    if entry.forced:
        return f"forced, although {objection(db, entry.branch, entry.task_id)}; it completes no task"
    if task is None or task.state == COMPLETED:
        return ""
    if task.state == CANCELLED:
        return f"{task.id} is CANCELLED, and stays so"
    reason = _why_unfinished(db, entry, task)
    if reason:
        return f"{reason}, so {task.id} stays {task.state}"
    try:
        return lifecycle.complete_landed(db, task, _author(merger), commit=entry.tip)
    except Refused as error:
        return error.message


def _why_unfinished(db: Database, entry: Entry, task: Task) -> str:
    """Why a task needs more than what landed: its agent is still at work, or ended before it was done."""
    if task.state in _HANDED_OVER:
        return ""
    if task.assignee is not None and agents.living(db, task.assignee) is not None:
        return f"{task.assignee} is still at work"
    last = agents.sessions(db, branch=entry.branch)[-1:]
    if last and last[0].outcome not in (None, FINISHED):
        return f"{last[0].agent} {last[0].outcome} before it was done"
    return ""


def complete_landed(merger: Merger, base: str) -> None:
    """Complete tasks that were handed over after their work had landed, as far as git finds it on the base."""
    for task in tasks.in_states(merger.ctx.db, *_HANDED_OVER):
        commit = task.commit
        if commit is None or not _is_on(merger, task, commit, base):
            continue
        try:
            with merger.ctx.db.write() as db:
                waited = lifecycle.complete_landed(db, tasks.get(db, task.id), _author(merger), commit=commit)
        except Refused:
            continue  # it has children that are not finished
        although = f", although {waited}" if waited else ""
        merger.say(f"{task.id} is completed: {task.branch or commit[:12]} is on {base}{although}\n")


def _is_on(merger: Merger, task: Task, commit: str, base: str) -> bool:
    """True if a base has all of a task's work; a commit that no longer exists is on no base."""
    db = merger.ctx.db
    if not store.has_landing(db, task.id):
        return False
    if any(session.is_alive or session.base_commit == commit for session in agents.sessions(db, task_id=task.id)):
        return False
    return merger.merging.store.find_commit(commit) is not None and is_landed(merger, task.branch or "", commit, base)


def reopen_task(merger: Merger, entry: Entry) -> bool:
    """Within the transaction that undoes a landing: open its task again. False if it was not completed."""
    task = tasks.existing(merger.ctx.db, entry.task_id)
    if task is None or task.state != COMPLETED:
        return False
    lifecycle.reopen(merger.ctx.db, task.id, _author(merger))
    return True


def _author(merger: Merger) -> Author:
    return Author(merger.actor, merger.ctx.now())
