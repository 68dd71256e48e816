"""Branches of tasks that are finished. Only what is proved to be landed is ever deleted.

A branch goes when its task is finished or gone, no checkout is on it, and its work has landed on the base. Everything
else stays, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, Doc, op
from rookery.tasks import store
from rookery.vcs.model import RefMoved
from rookery.vcs.ref_names import AGENT_BRANCHES, UNDONE_WORK, undone_name


@dataclass(frozen=True, slots=True)
class Branch(Record):
    """A branch of a task, and what becomes of it."""

    PRINTS = "branch"
    branch: str
    commit: str
    task_id: str | None
    state: str | None
    verdict: str
    """`removable`, `deleted` or `kept`."""
    reason: str


@op("vcs cleanup", needs="branch.write", long=True, touches=PROCESS, owns=NOTHING, view="vcs.cleanup")
def cleanup(
    ctx: Context,
    *,
    delete: Annotated[bool, Doc("Delete the branches that are removable; without it they are only listed.")] = False,
) -> list[Branch]:
    """List branches of finished tasks, or delete those whose work the base branch contains.

    A branch with work that has not landed, or that is checked out somewhere, is never deleted.
    """
    vcs = ctx.vcs()
    base = ctx.config.project.base or vcs.default_branch()
    if base is None:
        raise InvalidState("there is no base branch to compare with", hint="set project.base")
    branches = vcs.branches(AGENT_BRANCHES)
    tasks = store.named_in(ctx.db, branches)
    checked_out = set(vcs.checkouts().values())
    undone = vcs.saved_refs(UNDONE_WORK)
    target = vcs.resolve(base)
    judged = []
    for name, tip in sorted(branches.items()):
        # Where two tasks share a handle, one that is not finished keeps the branch.
        task = min(tasks[name], key=lambda task: (task.is_finished, task.branch != name), default=None)
        verdict, reason = "removable", f"{base} contains it"
        if undone_name(name) in undone:
            verdict, reason = "kept", "its landing was undone"
        elif task is not None and not task.is_finished:
            verdict, reason = "kept", f"its task is {in_words(task.state)}"
        elif name in checked_out:
            verdict, reason = "kept", "it is checked out"
        elif not vcs.has_landed(tip, target, since=None if task is None else task.start_commit):
            verdict, reason = "kept", f"it holds work that has not landed on {base}, or was reverted there"
        elif delete:
            try:
                vcs.delete_branch(name, tip)
                verdict = "deleted"
            except RefMoved:
                verdict, reason = "kept", "it moved meanwhile"
        task_id, state = (None, None) if task is None else (task.id, task.state)
        judged.append(Branch(name, tip, task_id, state, verdict, reason))
    return judged
