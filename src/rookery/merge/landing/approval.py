"""Who has reviewed the work that is about to land, as tasks and mail have it on record.

An approval is of one commit: what went on afterwards nobody has seen. And nobody reviews their own work.
"""

from __future__ import annotations

from rookery.events.store import last_actor
from rookery.mail import store as mail
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED


def reviewer_of(merger: Merger, entry: Entry) -> str | None:
    """Who approved the task, else who said by mail that the branch is checked and may land; None if nobody did."""
    if entry.task_id is None or entry.agent is None:
        return None
    task = tasks.existing(merger.ctx.db, entry.task_id)
    if task is None or task.commit not in (None, entry.tip):
        return None
    found = _approver(merger, entry) if task.state == APPROVED else None
    return found or _endorser(merger, entry)


def _approver(merger: Merger, entry: Entry) -> str | None:
    actor = last_actor(merger.ctx.db, "task.approved", entry.task_id or "")
    return None if actor == entry.agent else actor


def _endorser(merger: Merger, entry: Entry) -> str | None:
    """The last sender of a `merge_ready` in the life in which the work was done."""
    lives = [each for each in agents.sessions(merger.ctx.db, agent=entry.agent) if each.branch == entry.branch]
    if not lives:
        return None
    return mail.endorser(merger.ctx.db, entry.branch, author=entry.agent or "", since=lives[-1].created_at)
