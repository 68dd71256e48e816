"""Whether the work of a task is on its base, which is what completed means for a task with work of its own.

Work of its own is a commit on the task's branch beyond the one that it started from, or something uncommitted in a
checkout of that branch. It has landed if the base contains it and nothing later there reverts it, whichever way it
came: a landing of ours, squashed or rebased too, or a plain `git merge`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.tasks import landed_store, store
from rookery.tasks.model import ACTIVE, TRANSITIONS, Task
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import open_vcs
from rookery.vcs.git.in_progress import find_operation
from rookery.vcs.git.landed import Evidence, Landing
from rookery.vcs.model import UnknownRevision
from rookery.vcs.ref_names import bring_back

_SHOWN = 3


class NotLanded(Refused):
    """A task has work of its own that is not on its base."""

    code = "not_landed"


@dataclass(frozen=True, slots=True)
class TaskWork(Record):
    """What a task's branch holds."""

    tip: str | None = None
    """The commit that holds it; None if the task has no branch, or the branch is gone and no commit was recorded."""
    has_commits: bool = False
    """It has commits beyond the one that it started from."""
    unlanded: str = ""
    """Why its commits do not count as landed; empty if they do, or if there are none."""
    is_branch_gone: bool = False
    """There is no such branch any more; `tip` is the commit that was recorded."""
    uncommitted: str = ""
    """What is not committed in a checkout of the branch; empty if there is nothing."""

    @property
    def is_settled(self) -> bool:
        """True if the base has all of it."""
        return not self.unlanded and not self.uncommitted


def look(ctx: Context, task: Task) -> TaskWork:
    """What a task's branch holds, and whether its base has it; no git is started for a task without a branch."""
    if task.branch is None:
        return TaskWork()
    return look_at_commits(ctx, task).replace(uncommitted=find_uncommitted(ctx, ctx.repository(), task.branch))


def look_at_commits(ctx: Context, task: Task) -> TaskWork:
    """The same, without a look into the checkouts of the branch."""
    if task.branch is None:
        return TaskWork()
    repository = ctx.repository()
    branch_tip = repository.branch_tip(task.branch)
    tip = branch_tip or task.commit
    if tip is None or tip == task.start_commit:
        return TaskWork(tip)
    return TaskWork(tip, True, _why_unlanded(ctx, repository, task, tip), branch_tip is None)


def check_landed(ctx: Context, task: Task, work: TaskWork) -> None:
    """Raise NotLanded, with what to run, unless the base has all of a task's work."""
    if work.is_settled:
        return
    is_agent = ctx.actor != HUMAN
    merge = f"`rook merge --branch {shlex.quote(str(task.branch))}` lands it, and completes the task"
    if work.is_branch_gone:
        merge = f"{bring_back(str(task.branch), str(work.tip))}; then {merge}"
    if is_agent:
        merge = ""
    submit = ""
    if task.state in TRANSITIONS["submit"][0]:
        commits = "commits it and hands it in" if work.uncommitted else "hands it in"
        submit = f"`rook task submit {task.id}` {commits}, and takes --result and --learning"
        if is_agent:
            submit += "; the task is completed when it has landed"
    parts = [submit, merge] if work.uncommitted else [merge, submit]
    reason = work.uncommitted or work.unlanded
    raise NotLanded(
        f"{task.id} has work that has not landed, so it is not completed: {reason}",
        hint="; ".join(filter(None, parts)) or "a person lands it",
    )


def cleared_above(ctx: Context, task: Task) -> frozenset[str]:
    """The unfinished tasks above one that have a branch, and whose base has all that is there.

    They complete when their last child does. What cannot be found out keeps a task open.
    """
    return cleared(ctx, store.ancestors(ctx.db, task))


def cleared(ctx: Context, tasks: Iterable[Task]) -> frozenset[str]:
    """Those of some unfinished tasks that have a branch, and whose base has all that is there."""
    settled = set()
    for task in tasks:
        if task.branch is not None and task.state in ACTIVE:
            with suppress(Refused):
                if look(ctx, task).is_settled:
                    settled.add(task.id)
    return frozenset(settled)


def find_uncommitted(ctx: Context, repository: Vcs, branch: str) -> str:
    """What is not committed in the checkouts of a branch, or what git has begun with it; empty if there is nothing."""
    operation = find_operation(repository.merging().store, branch)
    if operation is not None:
        return operation.use_of(branch)
    for folder, on in repository.checkouts().items():
        if on == branch and os.path.isdir(folder):
            changes = open_vcs(folder, ctx.config.vcs).status().changes
            if changes:
                paths = ", ".join(repr(change.path) for change in changes[:_SHOWN])
                more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
                return f"{folder} has uncommitted changes in {paths}{more}"
    return ""


def _why_unlanded(ctx: Context, repository: Vcs, task: Task, tip: str) -> str:
    branch = str(task.branch)
    compared = bases(ctx, repository, branch)
    if not compared:
        return f"there is no base to compare {branch} with; set project.base"
    for base in compared:
        with suppress(UnknownRevision):  # the commit was removed from the repository, so no base has it
            if repository.has_landed(tip, base, evidence=evidence(ctx.db, branch, base, task.start_commit)):
                return ""
    return f"{branch} is at {tip[:12]}, which {compared[0]} lacks or has reverted"


def bases(ctx: Context, repository: Vcs, branch: str) -> list[str]:
    """Where a branch may have landed: the project's base, and where we landed it; the branch itself is none."""
    named = (ctx.config.project.base or repository.default_branch(), *landed_store.bases(ctx.db, branch))
    return [base for base in dict.fromkeys(named) if base and base != branch and repository.branch_tip(base)]


def evidence(db: Database, branch: str, base: str, since: str | None) -> Evidence:
    """What is known of a branch beside git's history: where its work began, and our records of what landed."""
    own, hidden = (tuple(Landing(*row) for row in rows) for rows in landed_store.landings(db, branch, base))
    return Evidence(since, own, hidden)
