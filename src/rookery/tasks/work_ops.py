"""What we offer of tasks with version control: `start` gives a task a branch, `submit` hands it in, and `complete` asks
whether its work has landed.

Checks come first, then version control, then the state, each safe to repeat: killed in between, the same command
finds the branch or the commit that is already there and goes on.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from rookery.base.errors import InvalidInput, InvalidState, NoRepository
from rookery.base.text import in_words, one_line
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, CHECKOUTS, LEARNINGS, LONG_TEXT, PROCESS, TASKS, Doc, Owns, Ref, op
from rookery.tasks import landed, lifecycle, listing_store, store
from rookery.tasks.assembly import assemble_one
from rookery.tasks.model import ACTIVE, PENDING, AlreadyClaimed, NotReady, Task, TaskView, next_state
from rookery.tasks.ops import AgentOption, OwnTaskArg, author
from rookery.tasks.scope import outside as scopes
from rookery.tasks.store import Author
from rookery.vcs.backend import Vcs
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.model import DirtyCheckout, NothingToCommit
from rookery.vcs.ref_names import branch_names

ResultOption = Annotated[str | None, LONG_TEXT, Doc("What came out of it.")]
LearningOption = Annotated[
    tuple[str, ...], Ref(LEARNINGS), Doc("Something that was found out; can be given several times.")
]
AttemptOption = Annotated[int | None, Doc("Refuse unless this is still the current attempt.")]
_MOST_LISTED = 10
_HOW_OUTSIDE = "`rook task submit --outside WHY`"


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
    branch = _branch_for(db, vcs, by.name, chosen)
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


@op("task submit", needs="task.write", long=True, touches=PROCESS, view="tasks.one")
def submit(
    ctx: Context,
    task: Annotated[
        str | None,
        Ref(TASKS),
        Owns(TASKS),
        Doc("The task; by default the one whose branch is checked out here, else the one that you hold."),
    ] = None,
    *,
    result: ResultOption = None,
    learning: LearningOption = (),
    outside: Annotated[
        str | None, Doc("Why it changes files that its agent was not given (`sling --files`), if it does.")
    ] = None,
    agent: AgentOption = None,
    attempt: AttemptOption = None,
) -> TaskView:
    """Hand a task's branch in for review; `rook merge` lands it, and that completes the task.

    In a checkout of the task's branch, everything that is uncommitted there is committed first; elsewhere the
    branch's tip is handed in. Only the agent that holds the task, or a person, hands it in. A person also hands in what
    an agent has left that crashed or was stopped.
    """
    by, vcs = author(ctx, agent), ctx.vcs()
    here = vcs.current_branch() if task is None else None
    with ctx.db.read() as db:
        known = _find_held(db, here, by) if task is None else store.find(db, task)
        _check_submittable(db, known, by)
        _check_submitter(known, by, attempt)
    if known.branch is None:
        raise InvalidState(
            f"{known.id} has no branch to hand in",
            hint=f"`rook task complete {known.id}` completes a task without one; `rook task start` makes one",
        )
    _commit_here(vcs, known)
    repository = ctx.repository()
    check_free(repository.merging().store, known.branch)
    uncommitted = landed.find_uncommitted(ctx, repository, known.branch)
    if uncommitted:
        raise DirtyCheckout(uncommitted, hint="commit it there, or run this command there")
    tip = repository.branch_tip(known.branch)
    if tip is None or tip == known.start_commit:
        problem = "there is no such branch" if tip is None else "it holds no commit of its own"
        raise InvalidState(
            f"{known.branch} cannot be handed in: {problem}",
            hint=f"commit there first; if {known.id} needs no commit, `rook task complete {known.id}`",
        )
    files = scopes.check_hand_in(
        ctx.db, repository, known.branch, ctx.config.project.base, reason=outside, by=by.name, how=_HOW_OUTSIDE
    )
    with ctx.db.write() as db:
        current = _check_same(known, store.get(db, known.id))
        _check_submitter(current, by, attempt)
        if _check_submittable(db, current, by):
            current = lifecycle.begin(db, current, "start", by, assignee=by.name, lease_until=None)
        scopes.keep(db, files, actor=by.name, at=by.now)
        submitted = lifecycle.submit(db, current, by, commit=tip, result=result, learned=learning)
        return assemble_one(db, submitted)


@op("task complete", needs="task.write", long=True, touches=PROCESS, view="tasks.one")
def complete(
    ctx: Context,
    task: OwnTaskArg,
    *,
    result: ResultOption = None,
    learning: LearningOption = (),
    agent: AgentOption = None,
    attempt: AttemptOption = None,
) -> TaskView:
    """Finish a task: its work has landed, or it has none of its own.

    Work of its own is a commit on the task's branch, or something uncommitted in a checkout of it. It has landed if the
    base contains it and nothing later reverts it, however it came there. Until then this is refused and changes
    nothing: `rook merge --branch` lands the work and completes the task, `rook task submit` hands it in. The branch's
    tip is recorded. Learnings go up to the parent, and parents with nothing left to do are finished too.
    """
    by = author(ctx, agent)
    with ctx.db.read() as db:
        known = store.find(db, task)
        lifecycle.check_completable(db, known, by, attempt, has_landed=known.branch is not None)
    work = landed.look(ctx, known)
    landed.check_landed(ctx, known, work)
    cleared = landed.cleared_above(ctx, known)
    commit = work.tip if known.branch is not None else _current_commit(ctx)
    with ctx.db.write():
        _check_same(known, store.get(db, known.id))
        return lifecycle.complete(
            db,
            known.id,
            by,
            attempt=attempt,
            result=result,
            learned=learning,
            commit=commit,
            has_landed=work.has_commits,
            cleared=cleared,
        )


def _find_startable(db: Database, text: str, author: Author) -> Task:
    """The task itself, or the next one under it; raises why it cannot be started."""
    task = store.find(db, text)
    next_state("start", task)
    lifecycle.check_unblocked(db, task)
    for above in store.ancestors(db, task):
        if above.state not in ACTIVE:
            raise InvalidState(
                f"{above.id} above it is {in_words(above.state)}", hint=f"`rook task reopen {above.id}` first"
            )
    if store.has_unfinished_children(db, task.id):
        leaf = listing_store.next_ready(db, author.now, task)
        if leaf is None:
            raise NotReady(f"nothing under {task.id} is ready", hint=f"`rook task tree {task.id}` shows why")
        return leaf
    if task.is_held(author.now) and task.assignee != author.name:
        raise AlreadyClaimed(f"{task.assignee} is at work on {task.id}", hint=f"`rook task release {task.id}` first")
    return task


def _branch_for(db: Database, vcs: Vcs, agent: str, task: Task) -> str:
    """The task's branch; one with the whole id that was made before, and that another attempt has replaced, goes on."""
    whole = branch_names(agent, task.id)[-1]
    return whole if vcs.branch_tip(whole) is not None else store.branch_for(db, agent, task)


def _ensure_branch(vcs: Vcs, branch: str, base: str, task: Task) -> str:
    """The commit that the task's branch starts from; the branch is made if it is not there."""
    tip = vcs.branch_tip(branch)
    if tip is None:
        origin = vcs.base_commit(base)
        vcs.create_branch(branch, origin)
        return origin
    return task.start_commit if task.branch == branch and task.start_commit is not None else tip


def _find_held(db: Database, here: str | None, by: Author) -> Task:
    """The task whose branch is checked out here, else the one that the caller holds; raises unless that is one."""
    on_branch = store.of_branch(db, here) if here is not None else []
    if len(on_branch) == 1:
        return on_branch[0]
    held = on_branch or store.held_by(db, by.name)
    if len(held) == 1:
        return held[0]
    if not held:
        raise InvalidInput(
            f"this checkout is on no task's branch, and {by.name} holds no task",
            hint="name the task; `rook task list --state in-progress` shows the tasks that are in progress",
        )
    listed = "".join(f"\n- {task.id} {one_line(task.title, 60)}" for task in held[:_MOST_LISTED])
    more = f"\n- and {len(held) - _MOST_LISTED} more" if len(held) > _MOST_LISTED else ""
    raise InvalidInput(f"which task? It could be any of {len(held)}:{listed}{more}", hint="name it")


def _check_submittable(db: Database, task: Task, by: Author) -> bool:
    """True if a person hands in what an agent has left, so that the task has to be begun first; raises if it cannot."""
    if task.state != PENDING or task.branch is None or by.name != HUMAN:
        next_state("submit", task)
        return False
    lifecycle.check_unblocked(db, task)
    return True


def _check_submitter(task: Task, by: Author, attempt: int | None) -> None:
    """Raise unless the caller is a person, or the agent that holds the task."""
    lifecycle.check_holder(task, by, attempt)
    if by.name != HUMAN and task.assignee != by.name:
        raise AlreadyClaimed(
            f"{by.name} does not hold {task.id}", hint="the agent that holds a task hands it in, or a person"
        )


def _check_same(seen: Task, task: Task) -> Task:
    """The task, if its branch is still the one that git was asked about."""
    if (seen.branch, seen.attempts) != (task.branch, task.attempts):
        raise InvalidState(f"{task.id} was begun again meanwhile", hint=f"`rook task get {task.id}` shows it")
    return task


def _commit_here(vcs: Vcs, task: Task) -> None:
    """Commit what is uncommitted, if this is a checkout of the task's branch."""
    if vcs.current_branch() == task.branch:
        with suppress(NothingToCommit):
            vcs.commit(f"{one_line(task.title, 72)}\n\nTask: {task.id}\n")


def _current_commit(ctx: Context) -> str | None:
    """What the caller's checkout stands on; None without version control."""
    with suppress(NoRepository):
        return ctx.vcs().current_commit()
    return None
