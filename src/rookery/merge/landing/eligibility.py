"""Which branches may land: the current attempt of a task that is in review or approved.

A task can have branches of earlier attempts, and be given up while its branch is still there. Such work lands only when
a person forces it, and then completes nothing. No branch may change Rookery's own folder, whose settings decide what
the next agent can reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.config.project import is_own_name
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing.history import Unclear, landed_branches, start_of
from rookery.merge.merger import Merger
from rookery.merge.model import CANCELLED as TAKEN_OUT
from rookery.merge.model import CONFLICT, OPEN, OUTSIDE, UNDONE, Entry, Skipped
from rookery.merge.model import FAILED as DID_NOT_LAND
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED, Session, last_by
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, CANCELLED, FAILED, IN_PROGRESS, NEEDS_REBASE, PENDING, PENDING_REVIEW, Task
from rookery.tasks.reviews.decisions import why_moved, why_sent_back
from rookery.tasks.scope import store as scope_store
from rookery.tasks.scope.outside import Outside, find_outside
from rookery.vcs.ref_names import AGENT_BRANCHES

_IN_REVIEW = (PENDING_REVIEW, APPROVED)
_UNFINISHED = (PENDING, IN_PROGRESS, NEEDS_REBASE)


class Withdrawn(InvalidState):
    """Work that was queued may not land any more: its task was given up, or has a later attempt."""

    code = "withdrawn"


@dataclass(frozen=True, slots=True)
class Survey(Record):
    """The branches that are not on the base."""

    ready: tuple[str, ...]
    """Branches of agents that are finished."""
    queued: tuple[Entry, ...] = ()
    """What is queued besides, and lands with them."""
    skipped: tuple[Skipped, ...] = ()


def protected_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths of a repository that are in Rookery's folder, on any file system."""
    return tuple(path for path in paths if is_own_name(path.partition("/")[0]))


def objection(db: Database, branch: str, task_id: str | None) -> str:
    """Why a branch lands only by force; empty if it may land."""
    task = tasks.existing(db, task_id)
    if task is None:
        return ""
    if task.state in (CANCELLED, FAILED):
        return f"its task {task.id} is {in_words(task.state)}"
    if task.branch not in (None, branch):
        return f"a later attempt replaced it: {task.branch}"
    return why_sent_back(db, task)


def why_refused(db: Database, entry: Entry) -> str:
    """Why an entry may not land; empty if it may, also by force."""
    return "" if entry.forced else objection(db, entry.branch, entry.task_id)


def outside_of(merger: Merger, branch: str, tip: str, base: str) -> Outside | None:
    """What a branch changes outside its agent's files; None if its agent was given none, or it cannot land at all.

    Work that landed and was reverted lands again, so it counts too.
    """
    onto = merger.merging.tip(base)
    if onto is None or scope_store.find(merger.ctx.db, branch) is None:
        return None
    try:
        start = start_of(merger, branch, tip, base)
    except Unclear:
        return None
    return find_outside(merger.ctx.db, merger.vcs, branch, tip, base, start.known(onto))


def is_explained(db: Database, entry: Entry) -> bool:
    """True if an entry failed for files outside its agent's scope, and there is a reason for all of them by now."""
    if entry.kind != OUTSIDE:
        return False
    known = {file.path for file in scope_store.explained(db, [entry.branch]).get(entry.branch, ())}
    return known.issuperset(entry.files)


def survey(merger: Merger, base: str) -> Survey:
    """Every branch that is queued, or that an agent made, and that the base lacks: which land, and why the rest do not.

    Queued work of an unfinished task has to be named to land.
    """
    db = merger.ctx.db
    sessions = last_by("branch", agents.sessions(db))
    entries = {entry.branch: entry for entry in store.select(db, states=OPEN, base=base)}
    task_ids = (*(session.task_id for session in sessions.values()), *(entry.task_id for entry in entries.values()))
    tasks_by_id = tasks.get_many(db, filter(None, task_ids))
    tips = {name: tip for name, tip in merger.vcs.branches(AGENT_BRANCHES).items() if name in sessions}
    by_hand = {
        task.branch: task
        for task in tasks.in_states(db, *_IN_REVIEW)
        if task.branch is not None and task.branch not in sessions
    }
    landed = landed_branches(merger, tips, base)
    ready, queued, skipped = [], [], []
    for branch, tip in tips.items():
        session = sessions[branch]
        task = tasks_by_id.get(session.task_id or "")
        has_work = tip != session.base_commit and branch not in landed
        if not has_work and (task is None or task.state not in _IN_REVIEW):
            continue  # nothing is expected of it
        reason = _why_not_ready(db, session, task, tip, base)
        if not reason:
            ready.append(branch)
        elif branch not in entries:
            skipped.append(Skipped(branch, session.agent, session.task_id, reason))
    for branch, task in by_hand.items():
        reason = _why_not_ready_by_hand(merger, task, branch, base)
        if not reason:
            ready.append(branch)
        elif branch not in entries:
            skipped.append(Skipped(branch, task.assignee or "", task.id, reason))
    for branch, entry in entries.items():
        task = tasks_by_id.get(entry.task_id or "")
        if branch in ready:
            continue
        unapproved = "" if entry.forced else _why_unapproved(task, merger.merging.tip(branch) or entry.tip)
        if unapproved:
            skipped.append(Skipped(branch, entry.agent or "", entry.task_id, unapproved))
        elif entry.forced or task is None or task.state not in _UNFINISHED:
            queued.append(entry)
        else:
            reason = f"it is queued, but its task {task.id} is {in_words(task.state)}; `rook merge run` lands it"
            skipped.append(Skipped(branch, entry.agent or "", entry.task_id, reason))
    return Survey(tuple(ready), tuple(queued), tuple(skipped))


def _why_not_ready(db: Database, session: Session, task: Task | None, tip: str, base: str) -> str:
    if session.is_alive:
        return f"{session.agent} is still {session.state}"
    if tip == session.base_commit:
        return "it holds no commit of its own"
    reason = objection(db, session.branch, session.task_id) or _why_unapproved(task, tip)
    if reason:
        return reason
    if task is None and session.outcome != COMPLETED:
        return f"{session.agent} {session.outcome} before it was done"
    reason = _why_settled(db, session.branch, tip, base, session.agent)
    if reason:
        return reason
    if task is not None and task.state not in _IN_REVIEW:
        return f"its task {task.id} is {in_words(task.state)}, not in review"
    return ""


def _why_unapproved(task: Task | None, tip: str) -> str:
    """Why a branch that has moved since its approval has to be named to land; empty if it has not."""
    moved = "" if task is None else why_moved(task, tip)
    return (
        f"{moved}; `rook review approve {handle(task.id)}` approves it as it is" if task is not None and moved else ""
    )


def _why_not_ready_by_hand(merger: Merger, task: Task, branch: str, base: str) -> str:
    """Why a branch does not land that was handed in by `rook task submit`; empty if it does."""
    tip = merger.merging.tip(branch)
    if tip is None:
        return f"there is no branch {branch} any more"
    if tip == task.start_commit:
        return "it holds no commit of its own"
    if branch == base:
        return "it is the base itself"
    reason = objection(merger.ctx.db, branch, task.id) or _why_unapproved(task, tip)
    if reason:
        return reason
    return _why_settled(merger.ctx.db, branch, tip, base, branch)


def _way_on(entry: Entry) -> str:
    name = handle(entry.id)
    if entry.kind == CONFLICT:
        return f"`rook merge resolve {name}` opens its conflict"
    return f"`rook merge retry {name}` tries again"


def _why_settled(db: Database, branch: str, tip: str, base: str, name: str) -> str:
    """What became of the same commit before, if a person has to ask for it again by name."""
    newest = store.select(db, base=base, branch=branch, limit=1)
    if not newest or newest[0].tip != tip or is_explained(db, newest[0]):
        return ""
    reasons = {
        UNDONE: f"it was undone; `rook merge --branch {name}` lands it again",
        DID_NOT_LAND: f"it failed: {newest[0].reason}; {_way_on(newest[0])}",
        TAKEN_OUT: f"it was taken out of the queue; `rook merge retry {name}` puts it back",
    }
    return reasons.get(newest[0].state, "")
