"""What we offer of tasks beside their branches. The commands that agents call all the time are here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from rookery.base.clock import parse_duration
from rookery.base.errors import InvalidInput
from rookery.base.page import Page
from rookery.base.text import check_name
from rookery.ops.context import Context
from rookery.ops.operation import (
    ACTS_AS,
    AGENTS,
    LONG_TEXT,
    MOVES,
    NOTHING,
    PLACES,
    PROCESS,
    TASKS,
    Choices,
    Doc,
    Owns,
    Ref,
    op,
)
from rookery.tasks import landed, lifecycle, service, store
from rookery.tasks.listing_store import DEFAULT_LIMIT, Query
from rookery.tasks.model import KINDS, STATES, Deleted, Progress, TaskTree, TaskView
from rookery.tasks.service import Draft
from rookery.tasks.store import Author

TaskArg = Annotated[str, Ref(TASKS), Doc("The task's id, or its beginning or end.")]
OwnTaskArg = Annotated[TaskArg, Owns(TASKS)]
AgentOption = Annotated[
    str | None, Ref(AGENTS), ACTS_AS, Doc("For people: act as this agent; by default the caller acts.")
]
PriorityOption = Annotated[int | None, Doc("From 1, most urgent, to 5.")]
BlockersOption = Annotated[
    tuple[str, ...], Ref(TASKS), Doc("A task that has to be completed first; can be given several times.")
]
NewTitleOption = Annotated[str | None, Doc("A new title.")]
NewDescriptionOption = Annotated[str | None, LONG_TEXT, Doc("A new description.")]
NewContextOption = Annotated[str | None, LONG_TEXT, Doc("A new context.")]
OpenFlag = Annotated[bool, Doc("Only what is neither completed nor cancelled.")]
CompletedFlag = Annotated[bool, Doc("Only what is completed.")]
ArchivedFlag = Annotated[bool, Doc("Only what is archived; it is left out otherwise.")]
LimitOption = Annotated[int | None, Doc(f"How many at most ({DEFAULT_LIMIT}; 0 for all).")]
ReasonOption = Annotated[str | None, LONG_TEXT, Doc("Why; kept as the result.")]
LeaseOption = Annotated[
    str | None, Doc("How long the claim holds without activity of its agent, such as 90s or 30m (config: tasks.lease).")
]
AllTreeFlag = Annotated[bool, Doc("Show everything, however long the list is.")]
TREE_LIMIT = 500
UnderOption = Annotated[str | None, Ref(TASKS), Doc("Only under this epic or task.")]


def author(ctx: Context, agent: str | None = None) -> Author:
    """The caller, or the agent that the caller speaks for, now; the name is kept with the change."""
    return Author(check_name("an agent", agent or ctx.actor), ctx.now())


def present(**values: Any) -> dict[str, Any]:
    """The values that the caller named: None stands for the default, or for no change."""
    return {name: value for name, value in values.items() if value is not None}


@op("task create", needs="task.write", view="tasks.one")
def create(
    ctx: Context,
    title: Annotated[str, Doc("What has to be done, in a few words.")],
    *,
    description: Annotated[str | None, LONG_TEXT, Doc("What has to be done, at length.")] = None,
    context: Annotated[str | None, LONG_TEXT, Doc("What agents that work on it, or under it, have to know.")] = None,
    parent: Annotated[
        str | None, Owns(PLACES), Doc("The epic or task that it belongs to; without one it is a root.")
    ] = None,
    priority: PriorityOption = None,
    blocked_by: BlockersOption = (),
) -> TaskView:
    """Add a task.

    A root is an epic, its children are tasks, their children are subtasks.
    """
    words = present(description=description, context=context, parent=parent, priority=priority)
    return service.create(ctx.db, Draft(title, blocked_by=blocked_by, **words), author(ctx))


@op("task get", needs="task.read", view="tasks.one")
def get(ctx: Context, task: TaskArg) -> TaskView:
    """Show a task with its context chain, learnings and blockers."""
    return service.get(ctx.db, task)


@op("task list", needs="task.read", view="tasks.table")
def list_tasks(
    ctx: Context,
    *,
    parent: Annotated[str | None, Ref(TASKS), Doc("Only the children of this task.")] = None,
    epic: Annotated[str | None, Ref(TASKS), Doc("Only what is under this epic, at any depth.")] = None,
    state: Annotated[str | None, Choices(STATES), Doc("Only tasks in this state.")] = None,
    kind: Annotated[str | None, Choices(KINDS), Doc("Only this kind.")] = None,
    ready: Annotated[bool, Doc("Only what can be worked on now.")] = False,
    blocked: Annotated[
        bool, Doc("Only unfinished tasks that wait for a blocker, their own or one of a task above.")
    ] = False,
    open: OpenFlag = False,
    completed: CompletedFlag = False,
    archived: ArchivedFlag = False,
    flat: Annotated[bool, Doc("For people: a plain list, not grouped by epic.")] = False,
    limit: LimitOption = None,
    cursor: Annotated[str | None, Doc("The last task of the page before: go on after it.")] = None,
) -> Page[TaskView]:
    """List tasks, urgent first, then old first; all conditions must hold."""
    flags = {"ready": ready, "blocked": blocked, "open": open, "completed": completed, "archived": archived}
    query = Query(parent, epic, state, kind, **flags, **present(limit=limit), cursor=cursor)
    return service.list_tasks(ctx.db, query, ctx.now())


@op("task update", needs="task.write", view="tasks.one")
def update(
    ctx: Context,
    task: OwnTaskArg,
    *,
    title: NewTitleOption = None,
    description: NewDescriptionOption = None,
    context: NewContextOption = None,
    priority: PriorityOption = None,
    result: Annotated[str | None, LONG_TEXT, Doc("The result; it replaces the earlier one.")] = None,
    parent: Annotated[
        str | None, Owns(MOVES), Doc("Move it, with everything under it, below this task; `none` makes it a root.")
    ] = None,
) -> TaskView:
    """Change a task's texts, priority, result or parent."""
    changes = present(title=title, description=description, context=context, priority=priority, result=result)
    return service.update(ctx.db, task, author(ctx), changes, parent=parent)


@op("task claim", needs="task.write", owns=NOTHING, view="tasks.offer")
def claim(
    ctx: Context,
    *,
    epic: UnderOption = None,
    agent: AgentOption = None,
    lease: LeaseOption = None,
) -> TaskView | None:
    """Take the next ready task, so that no other agent gets it.

    It is yours until you release or finish it, or the lease runs out. An agent that comes back too late is refused, and
    loses nothing: commits stay on their branch.
    """
    return lifecycle.claim(ctx.db, author(ctx, agent), lease=_seconds(ctx, lease), clock=ctx.clock(), epic=epic)


@op("task renew", needs="task.write", view="tasks.one")
def renew(ctx: Context, task: OwnTaskArg, *, agent: AgentOption = None, lease: LeaseOption = None) -> TaskView:
    """Extend the lease of a claimed task."""
    return lifecycle.renew(ctx.db, task, author(ctx, agent), lease=_seconds(ctx, lease), clock=ctx.clock())


def _seconds(ctx: Context, lease: str | None) -> float:
    return ctx.config.tasks.lease if lease is None else parse_duration(lease)


@op("task release", needs="task.write", view="tasks.one")
def release(ctx: Context, task: OwnTaskArg, *, agent: AgentOption = None) -> TaskView:
    """Release a task, so that others can take it."""
    return lifecycle.release(ctx.db, task, author(ctx, agent))


@op("task reopen", needs="task.write", view="tasks.one")
def reopen(ctx: Context, task: OwnTaskArg) -> TaskView:
    """Reopen a finished or failed task, with the completed tasks above it."""
    return lifecycle.reopen(ctx.db, task, author(ctx))


@op("task cancel", needs="task.write", touches=PROCESS, view="tasks.one")
def cancel(ctx: Context, task: OwnTaskArg, *, reason: ReasonOption = None) -> TaskView:
    """Cancel a task, with everything unfinished under it."""
    cleared = landed.cleared_above(ctx, store.find(ctx.db, task))
    return lifecycle.cancel(ctx.db, task, author(ctx), reason=reason, cleared=cleared)


@op("task fail", needs="task.write", view="tasks.one")
def fail(ctx: Context, task: OwnTaskArg, *, reason: ReasonOption = None, agent: AgentOption = None) -> TaskView:
    """Record that a task could not be done."""
    return lifecycle.fail(ctx.db, task, author(ctx, agent), reason=reason)


@op("task archive", needs="task.write", view="tasks.one")
def archive(ctx: Context, task: OwnTaskArg) -> TaskView:
    """Archive a finished task, with everything under it."""
    return lifecycle.archive(ctx.db, task, author(ctx))


@op("task unarchive", needs="task.write", view="tasks.one")
def unarchive(ctx: Context, task: OwnTaskArg) -> TaskView:
    """Bring an archived task back, with everything under it."""
    return lifecycle.unarchive(ctx.db, task, author(ctx))


@op("task delete", needs="task.write", view="tasks.deleted")
def delete(
    ctx: Context,
    task: OwnTaskArg,
    *,
    force: Annotated[bool, Doc("Also if an agent is at work on it.")] = False,
) -> Deleted:
    """Delete a task with everything under it and their learnings. Branches and commits stay."""
    return Deleted(tuple(service.delete(ctx.db, task, author(ctx), force=force)))


@op("task block", needs="task.write", view="tasks.one")
def block(
    ctx: Context,
    task: OwnTaskArg,
    *,
    by: Annotated[
        tuple[str, ...], Ref(TASKS), Doc("The task that has to be completed first; can be given several times.")
    ],
) -> TaskView:
    """Block a task until others are completed."""
    return service.block(ctx.db, task, by, author(ctx))


@op("task unblock", needs="task.write", view="tasks.one")
def unblock(
    ctx: Context,
    task: OwnTaskArg,
    *,
    by: Annotated[tuple[str, ...], Ref(TASKS), Doc("The blocker to remove; without one, all of them.")] = (),
) -> TaskView:
    """Remove blockers of a task."""
    return service.unblock(ctx.db, task, by, author(ctx))


@op("task next-ready", needs="task.read", view="tasks.offer")
def next_ready(ctx: Context, *, epic: UnderOption = None) -> TaskView | None:
    """Show the task to work on next, without taking it."""
    return service.next_ready(ctx.db, ctx.now(), epic)


@op("task tree", needs="task.read", view="tasks.tree")
def tree(
    ctx: Context,
    task: Annotated[str | None, Ref(TASKS), Doc("Only this task and what is under it.")] = None,
    *,
    all: AllTreeFlag = False,
    limit: Annotated[int, Doc(f"About how many tasks ({TREE_LIMIT}), in whole trees where they fit.")] = TREE_LIMIT,
    cursor: Annotated[str | None, Ref(TASKS), Doc("The last root of the page before: go on after it.")] = None,
) -> Iterator[Page[TaskTree]]:
    """Show tasks as a tree; what is archived is left out at the top.

    With `--all` and `--json`, there is an envelope with a page for each line.
    """
    if limit < 1:
        raise InvalidInput("the limit is less than 1", hint="--all shows everything")
    if task is not None:
        return iter([Page([service.tree(ctx.db, task, 0 if all else limit)])])
    if all:
        return service.tree_pages(ctx.db, limit, cursor)
    return iter([service.first_trees(ctx.db, limit, cursor)])


@op("task search", needs="task.read", view="tasks.table")
def search(
    ctx: Context,
    query: Annotated[str, Doc("Words that must all occur; the last one may be unfinished.")],
    *,
    limit: Annotated[int, Doc("How many at most (50).")] = 50,
) -> list[TaskView]:
    """Search tasks, the best matches first."""
    return service.search(ctx.db, query, limit)


@op("task progress", needs="task.read", view="tasks.progress")
def progress(
    ctx: Context, task: Annotated[str | None, Ref(TASKS), Doc("Only what is under this task.")] = None
) -> Progress:
    """Show the progress of the project, or of one part of it."""
    return service.progress(ctx.db, task, ctx.now())
