"""What follows from a landing for tasks: done means landed, and what is taken back is open again."""

from __future__ import annotations

from rookery.base.errors import Refused
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing.attempts import objection
from rookery.merge.landing.landed import is_landed
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED as FINISHED
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, CANCELLED, COMPLETED, NEEDS_REBASE, PENDING_REVIEW, Task
from rookery.tasks.store import Author


def complete_task(merger: Merger, entry: Entry) -> str:
    """Within the landing's transaction: finish the task whose work is now on the base.

    Gives what is to be said of it, if anything: why it stays open, or what it should have waited for.
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
        return lifecycle.complete_landed(db, task, Author(merger.actor, merger.ctx.now()), commit=entry.tip)
    except Refused as error:
        return error.message


def _why_unfinished(db: Database, entry: Entry, task: Task) -> str:
    """Why what landed is not all of a task: its agent is still at work, or ended before it was done."""
    if task.state in (PENDING_REVIEW, APPROVED, NEEDS_REBASE):
        return ""
    if task.assignee is not None and agents.living(db, task.assignee) is not None:
        return f"{task.assignee} is still at work"
    last = agents.sessions(db, branch=entry.branch)[-1:]
    if last and last[0].outcome not in (None, FINISHED):
        return f"{last[0].agent} {last[0].outcome} before it was done"
    return ""


def complete_landed(merger: Merger, base: str) -> None:
    """Finish tasks that were handed over after their work had landed: the base contains it, as git says."""
    for task in tasks.in_states(merger.ctx.db, PENDING_REVIEW, APPROVED, NEEDS_REBASE):
        commit = task.commit
        if commit is None or not _is_on(merger, task, commit, base):
            continue
        author = Author(merger.actor, merger.ctx.now())
        try:
            with merger.ctx.db.write() as db:
                waited = lifecycle.complete_landed(db, tasks.get(db, task.id), author, commit=commit)
        except Refused:
            continue  # it has children that are not finished
        although = f", although {waited}" if waited else ""
        merger.say(f"{task.id} is completed: {task.branch or commit[:12]} is on {base}{although}\n")


def _is_on(merger: Merger, task: Task, commit: str, base: str) -> bool:
    """True if a base has all of a task's work; a commit that is no longer there at all is on none."""
    db = merger.ctx.db
    if not store.has_landing(db, task.id) or merger.merging.tip(base) is None:
        return False
    if any(each.is_alive or each.base_commit == commit for each in agents.sessions(db, task_id=task.id)):
        return False
    return merger.merging.store.find_commit(commit) is not None and is_landed(merger, task.branch or "", commit, base)


def reopen_task(merger: Merger, entry: Entry) -> bool:
    """Within the transaction that undoes a landing: its task is to be done again. False if it was not completed."""
    task = tasks.existing(merger.ctx.db, entry.task_id)
    if task is None or task.state != COMPLETED:
        return False
    lifecycle.reopen(merger.ctx.db, task.id, Author(merger.actor, merger.ctx.now()))
    return True
