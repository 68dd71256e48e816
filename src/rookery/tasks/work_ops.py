"""What we offer of tasks with version control: `start` gives a task a branch, `complete` records what was done there.

Checks come first, then version control, then the state, each safe to repeat: killed in between, the same command
finds the branch or the commit that is already there and goes on.
"""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.base.text import one_line
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, CHECKOUTS, LEARNINGS, LONG_TEXT, PROCESS, Doc, Owns, Ref, op
from rookery.tasks import lifecycle, listing_store, store
from rookery.tasks.assembly import assemble_one
from rookery.tasks.model import ACTIVE, AlreadyClaimed, NotReady, Task, TaskView, next_state
from rookery.tasks.ops import AgentOption, OwnTaskArg, author
from rookery.tasks.store import Author
from rookery.vcs.backend import Vcs
from rookery.vcs.model import DirtyCheckout, NothingToCommit
from rookery.vcs.ref_names import branch_name


@op("task start", needs="task.write", long=True, touches=PROCESS, view="tasks.one")
def start(
    ctx: Context,
    task: OwnTaskArg,
    *,
    checkout: Annotated[
        bool, Owns(CHECKOUTS), Doc("Also switch this checkout to the task's branch, if it is clean.")
    ] = False,
    base: Annotated[
        str | None, Ref(BRANCHES), Doc("The branch or commit to start from (config: project.base).")
    ] = None,
    agent: AgentOption = None,
) -> TaskView:
    """Begin a task on a branch of its own; on a parent, begin the next task under it.

    The branch and the commit that it starts from are recorded. No checkout is touched unless `--checkout` says so.
    """
    db, vcs, by = ctx.db, ctx.vcs(), author(ctx, agent)
    chosen = _find_startable(db, task, by)
    if checkout and not vcs.status().is_clean:
        raise DirtyCheckout("the checkout has changes, so it was not switched and nothing was started")
    branch = branch_name(by.name, chosen.id)
    start_commit = _ensure_branch(vcs, branch, base or ctx.config.project.base, chosen)
    with db.write():
        chosen = _find_startable(db, chosen.id, by)
        if chosen.assignee != by.name or not chosen.is_held(by.now):
            chosen = lifecycle.begin(db, chosen, "start", by, assignee=by.name, lease_until=None)
        if (chosen.branch, chosen.start_commit) != (branch, start_commit):
            chosen = store.change(db, chosen, "task.branched", by, branch=branch, start_commit=start_commit)
        view = assemble_one(db, chosen)
    if checkout:
        vcs.switch(branch)
    return view


@op("task complete", needs="task.write", long=True, touches=PROCESS, view="tasks.one")
def complete(
    ctx: Context,
    task: OwnTaskArg,
    *,
    result: Annotated[str | None, LONG_TEXT, Doc("What came out of it.")] = None,
    learning: Annotated[
        tuple[str, ...], Ref(LEARNINGS), Doc("Something that was found out; can be given several times.")
    ] = (),
    agent: AgentOption = None,
    attempt: Annotated[int | None, Doc("Refuse unless this is still the current attempt.")] = None,
) -> TaskView:
    """Finish a task with the commit that holds its work.

    In a checkout of the task's branch, everything that is uncommitted there is committed first; elsewhere the
    branch's tip is recorded. Learnings go up to the parent, and parents with nothing left to do are finished too.
    """
    by, vcs = author(ctx, agent), ctx.vcs()
    with ctx.db.read() as db:
        known = store.find(db, task)
        lifecycle.check_completable(db, known, by, attempt)
    commit = _record_work(vcs, known)
    return lifecycle.complete(db, known.id, by, attempt=attempt, result=result, learned=learning, commit=commit)


def _find_startable(db: Database, text: str, author: Author) -> Task:
    """The task itself, or the next one under it; raises why it cannot be started."""
    task = store.find(db, text)
    next_state("start", task)
    lifecycle.check_unblocked(db, task)
    for above in store.ancestors(db, task):
        if above.state not in ACTIVE:
            raise InvalidState(f"{above.id} above it is {above.state}", hint=f"`rook task reopen {above.id}` first")
    if store.has_unfinished_children(db, task.id):
        leaf = listing_store.next_ready(db, author.now, task)
        if leaf is None:
            raise NotReady(f"nothing under {task.id} is ready", hint=f"`rook task tree {task.id}` shows why")
        return leaf
    if task.is_held(author.now) and task.assignee != author.name:
        raise AlreadyClaimed(f"{task.assignee} is at work on {task.id}", hint=f"`rook task release {task.id}` first")
    return task


def _ensure_branch(vcs: Vcs, branch: str, base: str, task: Task) -> str:
    """The commit that the task's branch starts from; the branch is made if it is not there."""
    tip = vcs.branch_tip(branch)
    if tip is None:
        origin = vcs.base_commit(base)
        vcs.create_branch(branch, origin)
        return origin
    return task.start_commit if task.branch == branch and task.start_commit is not None else tip


def _record_work(vcs: Vcs, task: Task) -> str | None:
    """The commit that holds the task's work, made here if this is its checkout and something is uncommitted."""
    if task.branch is None:
        return vcs.current_commit()
    if vcs.current_branch() != task.branch:
        return vcs.branch_tip(task.branch) or vcs.current_commit()
    try:
        return vcs.commit(f"{one_line(task.title, 72)}\n\nTask: {task.id}\n")
    except NothingToCommit:
        return vcs.current_commit()
