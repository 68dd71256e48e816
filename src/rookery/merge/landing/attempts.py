"""Which branches may land: the current attempt of a task that is in review or approved.

A task can have branches of earlier attempts, and be given up while its branch is there. Such work lands only when a
person forces it, and then completes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing.landed import landed_branches
from rookery.merge.merger import Merger
from rookery.merge.model import CANCELLED as TAKEN_OUT
from rookery.merge.model import FAILED as DID_NOT_LAND
from rookery.merge.model import OPEN, UNDONE, Entry, Skipped
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED, Session
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, CANCELLED, FAILED, IN_PROGRESS, NEEDS_REBASE, PENDING, PENDING_REVIEW, Task
from rookery.vcs.ref_names import AGENT_BRANCHES

IN_REVIEW = (PENDING_REVIEW, APPROVED)
UNFINISHED_WORK = (PENDING, IN_PROGRESS, NEEDS_REBASE)


class Withdrawn(InvalidState):
    """Work that was queued may not land any more: its task was given up, or has a later attempt."""

    code = "withdrawn"


@dataclass(frozen=True, slots=True)
class Survey(Record):
    """The agents' branches that are not on the base."""

    ready: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def objection(db: Database, branch: str, task_id: str | None) -> str:
    """Why a branch lands only by force, empty if it may land."""
    task = tasks.existing(db, task_id)
    if task is None:
        return ""
    if task.state in (CANCELLED, FAILED):
        return f"its task {task.id} is {task.state}"
    if task.branch not in (None, branch):
        return f"a later attempt replaced it: {task.branch}"
    return ""


def check_current(db: Database, entries: Iterable[Entry]) -> None:
    """Within the transaction that begins a landing: raise Withdrawn if something of it may not land any more."""
    for each in entries:
        reason = "" if each.forced else objection(db, each.branch, each.task_id)
        if reason:
            raise Withdrawn(
                f"{each.branch} may not land: {reason}", hint="`rook merge list --all` shows what became of it"
            )


def survey(merger: Merger, base: str) -> Survey:
    """Every branch of an agent that the base lacks: what is finished and may land, and why the rest may not."""
    last = {session.branch: session for session in agents.sessions(merger.ctx.db)}
    tips = {name: tip for name, tip in merger.vcs.branches(AGENT_BRANCHES).items() if name in last}
    landed = landed_branches(merger, tips, base)
    found = tasks.get_many(merger.ctx.db, [each.task_id for each in last.values() if each.task_id])
    ready, skipped = [], []
    for branch, tip in tips.items():
        session = last[branch]
        task = found.get(session.task_id or "")
        has_work = tip != session.base_commit and branch not in landed
        if not has_work and (task is None or task.state not in IN_REVIEW):
            continue  # nothing is expected of it
        reason = _why_not(merger.ctx.db, session, task, tip, base)
        if reason:
            skipped.append(Skipped(branch, session.agent, session.task_id, reason))
        else:
            ready.append(branch)
    return Survey(tuple(ready), tuple(skipped))


def add_queue(merger: Merger, base: str, found: Survey) -> Survey:
    """A survey with what is queued for the base: what is in review lands with it, the rest has to be named."""
    ready, skipped = list(found.ready), []
    entries = store.select(merger.ctx.db, states=OPEN, base=base)
    owners = tasks.get_many(merger.ctx.db, [each.task_id for each in entries if each.task_id])
    for each in entries:
        task = owners.get(each.task_id or "")
        if each.branch in ready:
            continue
        if each.forced or task is None or task.state not in UNFINISHED_WORK:
            ready.append(each.branch)
        else:
            reason = f"it is queued, but its task {task.id} is {task.state}; `rook merge run` lands it"
            skipped.append(Skipped(each.branch, each.agent or "", each.task_id, reason))
    queued = {each.branch for each in entries}
    return Survey(tuple(ready), (*(each for each in found.skipped if each.branch not in queued), *skipped))


def skip(db: Database, entry: Entry) -> Skipped | None:
    """Why an entry would be refused, if it would."""
    reason = "" if entry.forced else objection(db, entry.branch, entry.task_id)
    return Skipped(entry.branch, entry.agent or "", entry.task_id, reason) if reason else None


def _why_not(db: Database, session: Session, task: Task | None, tip: str, base: str) -> str:
    if session.is_alive:
        return f"{session.agent} is still {session.state}"
    if tip == session.base_commit:
        return "it holds no commit of its own"
    reason = objection(db, session.branch, session.task_id)
    if reason:
        return reason
    if task is None and session.outcome != COMPLETED:
        return f"{session.agent} {session.outcome} before it was done"
    newest = store.select(db, base=base, branch=session.branch, limit=1)
    if newest and newest[0].tip == tip:
        earlier = newest[0]
        if earlier.state == UNDONE:
            return f"it was undone; `rook merge --branch {session.agent}` lands it again"
        if earlier.state == DID_NOT_LAND:
            return f"it failed: {earlier.reason}; `rook merge retry {session.agent}` tries again"
        if earlier.state == TAKEN_OUT:
            return f"it was taken out of the queue; `rook merge retry {session.agent}` puts it back"
    if task is not None and task.state not in IN_REVIEW:
        return f"its task {task.id} is {task.state}, not in review"
    return ""
