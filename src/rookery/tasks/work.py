"""Tasks and version control: `start` gives a task a branch, `complete` records what was done there.

Checks come first, then version control, then the state, each safe to repeat: killed in between, the same command
finds the branch or the commit that is already there and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from rookery.base.errors import InvalidState
from rookery.base.text import one_line
from rookery.db.database import Database
from rookery.tasks import lifecycle, listing_store, store
from rookery.tasks.assembly import assemble_one
from rookery.tasks.model import ACTIVE, AlreadyClaimed, NotReady, Task, TaskView, next_state
from rookery.tasks.store import Author
from rookery.vcs.backend import Vcs
from rookery.vcs.model import DirtyCheckout, NothingToCommit
from rookery.vcs.ref_names import branch_name


def start(db: Database, vcs: Vcs, text: str, author: Author, *, base: str, checkout: bool) -> TaskView:
    """Begin a task, or the next one under it, on a branch of its own; a checkout is switched only on request."""
    agent = author.name
    task = _find_startable(db, text, author)
    if checkout and not vcs.status().is_clean:
        raise DirtyCheckout("the checkout has changes, so it was not switched and nothing was started")
    branch = branch_name(agent, task.id)
    start_commit = _ensure_branch(vcs, branch, base, task)
    with db.write():
        task = _find_startable(db, task.id, author)
        if task.assignee != agent or not task.is_held(author.now):
            task = lifecycle.begin(db, task, "start", author, assignee=agent, lease_until=None)
        if (task.branch, task.start_commit) != (branch, start_commit):
            task = store.change(db, task, "task.branched", author, branch=branch, start_commit=start_commit)
        view = assemble_one(db, task)
    if checkout:
        vcs.switch(branch)
    return view


def complete(
    db: Database,
    vcs: Vcs,
    text: str,
    author: Author,
    *,
    attempt: int | None,
    result: str | None,
    learned: Sequence[str],
) -> TaskView:
    """Commit what is in the task's checkout, and finish the task with that commit."""
    with db.read():
        task = store.find(db, text)
        lifecycle.check_completable(db, task, author, attempt)
    commit = _record_work(vcs, task)
    return lifecycle.complete(db, task.id, author, attempt=attempt, result=result, learned=learned, commit=commit)


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
        origin = base_commit(vcs, base)
        vcs.create_branch(branch, origin)
        return origin
    return task.start_commit if task.branch == branch and task.start_commit is not None else tip


def base_commit(vcs: Vcs, base: str) -> str:
    """Where work starts: at the base that is named, else at the default branch."""
    here = vcs.current_commit()
    name = base or vcs.default_branch()
    if name is not None and (here is not None or vcs.branch_tip(name) is not None):
        return vcs.resolve(name)
    if here is None:
        raise InvalidState("the repository has no commit to start from", hint="make a first commit")
    return here


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
