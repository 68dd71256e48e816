"""Branches of tasks that are finished. Only what is proved to be landed is ever deleted.

A branch goes when its task is finished or gone, no checkout is on it, and its work has landed on the base. Everything
else stays, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.ids import TASK, is_id
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import Task
from rookery.vcs.model import RefMoved, Vcs
from rookery.vcs.ref_names import AGENT_BRANCHES, UNDONE_WORK, undone_name


@dataclass(frozen=True, slots=True)
class Branch(Record):
    """A branch of a task, and what becomes of it."""

    branch: str
    commit: str
    task_id: str | None
    state: str | None
    verdict: str
    """`removable`, `deleted` or `kept`."""
    reason: str


def clean_up(db: Database, vcs: Vcs, base: str, *, delete: bool) -> list[Branch]:
    """Judge every branch of a task; with `delete`, remove what is proved to be landed."""
    branches = vcs.branches(AGENT_BRANCHES)
    wanted = {name: name.rpartition("/")[2] for name in branches}
    tasks = store.get_many(db, [each for each in wanted.values() if is_id(TASK, each)])
    used = set(vcs.checkouts().values())
    undone = vcs.saved_refs(UNDONE_WORK)
    target = vcs.resolve(base)
    judged = []
    for name, tip in sorted(branches.items()):
        task = tasks.get(wanted[name])
        reason = (
            "its landing was undone"
            if undone_name(name) in undone
            else _why_kept(vcs, name, tip, task, used, target, base)
        )
        verdict = "kept" if reason else "removable"
        if delete and not reason:
            try:
                vcs.delete_branch(name, tip)
                verdict, reason = "deleted", f"{base} contains it"
            except RefMoved:
                verdict, reason = "kept", "it moved meanwhile"
        task_id, state = (None, None) if task is None else (task.id, task.state)
        judged.append(Branch(name, tip, task_id, state, verdict, reason or f"{base} contains it"))
    return judged


def _why_kept(vcs: Vcs, name: str, tip: str, task: Task | None, used: set[str], target: str, base: str) -> str:
    if task is not None and not task.is_finished:
        return f"its task is {task.state}"
    if name in used:
        return "it is checked out"
    if not vcs.has_landed(tip, target, since=None if task is None else task.start_commit):
        return f"it holds work that has not landed on {base}, or was reverted there"
    return ""
