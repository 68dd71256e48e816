"""What a landing means for tasks: landed work completes its task, and an undone landing opens it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing.eligibility import objection
from rookery.merge.landing.history import is_landed, would_be_landed
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED as FINISHED
from rookery.tasks import landed, lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import ACTIVE, APPROVED, CANCELLED, COMPLETED, NEEDS_REBASE, PENDING_REVIEW, Task
from rookery.tasks.store import Author
from rookery.vcs.git.repository import GitStore

_HANDED_OVER = (PENDING_REVIEW, APPROVED, NEEDS_REBASE)


@dataclass(frozen=True, slots=True)
class Surroundings(Record):
    """What git says of tasks beside what lands, found out before the transaction that records it."""

    cleared: frozenset[str] = frozenset()
    """The tasks above with a branch that may be completed with those that land."""
    uncommitted: dict[str, str] = field(default_factory=dict)
    """Tasks that were not handed in and have uncommitted work, with what that is."""


def look_around(merger: Merger, entries: Iterable[Entry]) -> Surroundings:
    """What git says of the tasks of entries, and of those above them; usually no git is started for that."""
    ctx = merger.ctx
    landing = tasks.get_many(ctx.db, filter(None, (entry.task_id for entry in entries))).values()
    above = {task.id: task for child in landing for task in tasks.ancestors(ctx.db, child)}
    uncommitted = {}
    for task in landing:
        if task.branch is not None and task.state in ACTIVE and not agents.sessions(ctx.db, branch=task.branch):
            try:
                uncommitted[task.id] = landed.find_uncommitted(ctx, merger.vcs, task.branch)
            except Refused as error:
                uncommitted[task.id] = f"whether {task.branch} has uncommitted work is unknown: {error.message}"
    uncommitted = {task_id: reason for task_id, reason in uncommitted.items() if reason}
    return Surroundings(landed.cleared(ctx, above.values()), uncommitted)


def complete_task(merger: Merger, entry: Entry, around: Surroundings) -> str:
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
        return f"{task.id} is cancelled, and stays so"
    if task.state not in _HANDED_OVER and task.assignee and agents.living(db, task.assignee) is not None:
        return f"{task.id} is completed when {task.assignee}, which is at work, hands it in"
    reason = around.uncommitted.get(task.id) or _why_unfinished(db, entry, task)
    if reason:
        return f"{reason}, so {task.id} stays {in_words(task.state)}"
    try:
        return lifecycle.complete_landed(db, task, _author(merger), commit=entry.tip, cleared=around.cleared)
    except Refused as error:
        return error.message


def _why_unfinished(db: Database, entry: Entry, task: Task) -> str:
    """Why a task needs more than what landed: its agent ended before it was done."""
    if task.state in _HANDED_OVER:
        return ""
    last = agents.of_branch(db, entry.branch)[-1:]
    if last and last[0].outcome not in (None, FINISHED):
        return f"{last[0].agent} {last[0].outcome} before it was done"
    return ""


def complete_landed(merger: Merger, base: str) -> None:
    """Complete tasks that were handed over after their work had landed, as far as git finds it on the base."""
    for task in tasks.in_states(merger.ctx.db, *_HANDED_OVER):
        commit = task.commit
        if commit is None or not _is_on(merger, task, commit, base):
            continue
        cleared = landed.cleared_above(merger.ctx, task)
        try:
            with merger.ctx.db.write() as db:
                task = tasks.get(db, task.id)
                waited = lifecycle.complete_landed(db, task, _author(merger), commit=commit, cleared=cleared)
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


def find_unlanded(
    merger: Merger, git: GitStore, entries: Sequence[Entry], tips: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """For each landing the completed tasks whose work is on no base once all are undone; `tips` has the bases then.

    First its own task; what was landed by force completed none. Then those whose work came with it, as its branch was
    built on theirs.
    """
    own = {entry.task_id for entry in entries}
    unlanded: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        task = tasks.existing(merger.ctx.db, entry.task_id)
        is_own = task is not None and task.state == COMPLETED and not entry.forced
        works = [(str(entry.task_id), entry.branch, entry.tip, entry.base)] if is_own else []
        brought = git.read_parents(entry.tip, f"^{entry.base_before}", "--")
        beside = [task for task in tasks.completed_with(merger.ctx.db, brought) if task.id not in own]
        works += [(task.id, str(task.branch), str(task.commit), "") for task in beside]
        unlanded[entry.id] = tuple(
            task_id for task_id, branch, tip, but in works if not _stands(merger, git, branch, tip, tips, but)
        )
    return unlanded


def _stands(merger: Merger, git: GitStore, branch: str, tip: str, tips: Mapping[str, str], but: str) -> bool:
    """True if a base other than `but` has a branch's work: the project's, one of `tips`, or one where we landed it."""
    for base in {*landed.bases(merger.ctx, merger.vcs, branch), *tips} - {but}:
        onto = tips.get(base) or merger.merging.tip(base)
        if onto is not None and would_be_landed(merger, git, branch, tip, base, onto):
            return True
    return False


def reopen_tasks(merger: Merger, unlanded: Iterable[str]) -> tuple[Task, ...]:
    """Within the transaction that undoes a landing: open tasks again. Returns them, with those above them."""
    opened: tuple[Task, ...] = ()
    for task_id in unlanded:
        try:
            line = to_reopen(merger.ctx.db, (task_id,))
        except Refused as error:  # put away since the undo began: the base has moved, so the task stays as it is
            merger.say(f"{task_id} stays completed: {error.message}\n")
            continue
        if line:
            lifecycle.reopen(merger.ctx.db, task_id, _author(merger))
        opened += line
    return opened


def to_reopen(db: Database, unlanded: Iterable[str]) -> tuple[Task, ...]:
    """Those of some tasks that are completed, and those above them that open with them; raises why they cannot."""
    line: dict[str, Task] = {}
    for task_id in unlanded:
        task = tasks.existing(db, task_id)
        if task is not None and task.state == COMPLETED:
            line |= {one.id: one for one in lifecycle.to_reopen(db, task)}
    return tuple(line.values())


def _author(merger: Merger) -> Author:
    return Author(merger.actor, merger.ctx.now())
