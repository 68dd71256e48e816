"""What we offer of tasks without version control. The commands that agents call all the time are here."""

from __future__ import annotations

from rookery.base.clock import parse_duration
from rookery.base.text import check_name
from rookery.ops.context import Context
from rookery.ops.operation import INTEGER, MOVES, PLACES, TASKS, arg, flag, op, option, options
from rookery.tasks import lifecycle, service
from rookery.tasks.listing import DEFAULT_LIMIT, Query
from rookery.tasks.model import DEFAULT_PRIORITY, KINDS, STATES, Progress, TaskTree, TaskView
from rookery.tasks.store import Author

TASK = arg("task", "The task's id, or the beginning of it.")
AGENT = option("agent", "For people: act as this agent; by default the caller acts.", acts_as=True)
PRIORITY = option("priority", "From 1, most urgent, to 5.", kind=INTEGER)
REASON = option("reason", "Why; kept as the result.", long_text=True)
LEASE = option("lease", "How long it is held without a sign of life, such as 90s or 30m (config: tasks.lease).")


def author(ctx: Context, agent: str | None = None) -> Author:
    """The caller, or the agent that the caller speaks for, now; the name is kept with what it does."""
    return Author(check_name("an agent", agent or ctx.actor), ctx.now())


@op(
    "task create",
    arg("title", "What is to be done, in a few words."),
    option("description", "What is to be done, at length.", long_text=True),
    option("context", "What whoever works on it, or beneath it, has to know.", long_text=True),
    option("parent", "The epic or task that it belongs to; without one it is a root."),
    PRIORITY,
    options("blocked_by", "A task that has to be completed first; can be given several times."),
    needs="task.write",
    owns={"parent": PLACES},
    view="tasks.one",
)
def create(
    ctx: Context,
    title: str,
    description: str | None,
    context: str | None,
    parent: str | None,
    priority: int | None,
    blocked_by: tuple[str, ...],
) -> TaskView:
    """Add a task.

    A root is an epic, its children are tasks, their children are subtasks.
    """
    draft = service.Draft(
        title=title,
        description=description or "",
        context=context or "",
        parent=parent,
        priority=DEFAULT_PRIORITY if priority is None else priority,
        blocked_by=tuple(blocked_by),
    )
    return service.create(ctx.db, draft, author(ctx))


@op("task get", TASK, needs="task.read", view="tasks.one")
def get(ctx: Context, task: str) -> TaskView:
    """Show a task with its context chain, learnings and blockers."""
    return service.get(ctx.db, task)


@op(
    "task list",
    option("parent", "Only the children of this task."),
    option("epic", "Only what is beneath this epic, at any depth."),
    option("state", "Only tasks in this state.", choices=STATES),
    option("kind", "Only this kind.", choices=KINDS),
    flag("ready", "Only what can be worked on now."),
    flag("blocked", "Only unfinished tasks that wait for a blocker, their own or one of a task above."),
    flag("open", "Only what is neither completed nor cancelled."),
    flag("completed", "Only what is completed."),
    flag("archived", "Only what is archived; it is left out otherwise."),
    flag("flat", "For people: a plain list, not grouped by epic."),
    option("limit", f"How many at most ({DEFAULT_LIMIT}; 0 for all).", kind=INTEGER),
    option("cursor", "The last task of the page before: go on after it."),
    needs="task.read",
    view="tasks.table",
)
def list_tasks(
    ctx: Context,
    parent: str | None,
    epic: str | None,
    state: str | None,
    kind: str | None,
    ready: bool,
    blocked: bool,
    open: bool,
    completed: bool,
    archived: bool,
    flat: bool,
    limit: int | None,
    cursor: str | None,
) -> list[TaskView]:
    """List tasks, urgent first, then old first; conditions add up."""
    query = Query(
        parent=parent,
        epic=epic,
        state=state,
        kind=kind,
        ready=ready,
        blocked=blocked,
        open=open,
        completed=completed,
        archived=archived,
        limit=DEFAULT_LIMIT if limit is None else limit,
        cursor=cursor,
    )
    return service.list_tasks(ctx.db, query, ctx.now())


@op(
    "task update",
    TASK,
    option("title", "A new title."),
    option("description", "A new description.", long_text=True),
    option("context", "A new context.", long_text=True),
    PRIORITY,
    option("parent", "Move it, with everything beneath it, below this task; `none` makes it a root."),
    needs="task.write",
    owns={"task": TASKS, "parent": MOVES},
    view="tasks.one",
)
def update(
    ctx: Context,
    task: str,
    title: str | None,
    description: str | None,
    context: str | None,
    priority: int | None,
    parent: str | None,
) -> TaskView:
    """Change a task's words, priority or place."""
    given = {"title": title, "description": description, "context": context, "priority": priority}
    changes = {name: value for name, value in given.items() if value is not None}
    return service.update(ctx.db, task, author(ctx), changes, parent=parent)


@op(
    "task claim",
    option("epic", "Only beneath this epic or task."),
    AGENT,
    LEASE,
    needs="task.write",
    owns={},
    view="tasks.offer",
)
def claim(ctx: Context, epic: str | None, agent: str | None, lease: str | None) -> TaskView | None:
    """Take the next ready task, so that nobody else gets it.

    It is yours until you release or finish it, or the lease runs out. Whoever is late is refused then, and loses
    nothing: commits stay on their branch.
    """
    seconds = ctx.config.tasks.lease if lease is None else parse_duration(lease)
    return lifecycle.claim(
        ctx.db, author(ctx, agent), agent=agent or ctx.actor, lease=seconds, clock=ctx.clock(), epic=epic
    )


@op("task renew", TASK, AGENT, LEASE, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def renew(ctx: Context, task: str, agent: str | None, lease: str | None) -> TaskView:
    """Hold a claimed task for longer."""
    seconds = ctx.config.tasks.lease if lease is None else parse_duration(lease)
    return lifecycle.renew(ctx.db, task, author(ctx, agent), agent=agent or ctx.actor, lease=seconds, clock=ctx.clock())


@op("task release", TASK, AGENT, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def release(ctx: Context, task: str, agent: str | None) -> TaskView:
    """Give a task back for others to take."""
    return lifecycle.release(ctx.db, task, author(ctx, agent), agent=agent or ctx.actor)


@op("task reopen", TASK, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def reopen(ctx: Context, task: str) -> TaskView:
    """Take a finished or failed task up again, with the completed tasks above it."""
    return lifecycle.reopen(ctx.db, task, author(ctx))


@op("task cancel", TASK, REASON, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def cancel(ctx: Context, task: str, reason: str | None) -> TaskView:
    """Give a task up, and everything unfinished beneath it."""
    return lifecycle.cancel(ctx.db, task, author(ctx), reason=reason)


@op("task fail", TASK, REASON, AGENT, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def fail(ctx: Context, task: str, reason: str | None, agent: str | None) -> TaskView:
    """Record that a task could not be done."""
    return lifecycle.fail(ctx.db, task, author(ctx, agent), agent=agent or ctx.actor, reason=reason)


@op("task archive", TASK, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def archive(ctx: Context, task: str) -> TaskView:
    """Put a finished task away, with everything beneath it."""
    return lifecycle.archive(ctx.db, task, author(ctx))


@op("task unarchive", TASK, needs="task.write", owns={"task": TASKS}, view="tasks.one")
def unarchive(ctx: Context, task: str) -> TaskView:
    """Bring an archived task back, with everything beneath it."""
    return lifecycle.unarchive(ctx.db, task, author(ctx))


@op(
    "task delete",
    TASK,
    flag("force", "Also if somebody is at work on it."),
    needs="task.write",
    owns={"task": TASKS},
    view="tasks.deleted",
)
def delete(ctx: Context, task: str, force: bool) -> dict[str, list[str]]:
    """Delete a task with everything beneath it and their learnings. Branches and commits stay."""
    return {"deleted": service.delete(ctx.db, task, author(ctx), force=force)}


@op(
    "task block",
    TASK,
    options("by", "The task that has to be completed first; can be given several times.", required=True),
    needs="task.write",
    owns={"task": TASKS},
    view="tasks.one",
)
def block(ctx: Context, task: str, by: tuple[str, ...]) -> TaskView:
    """Let a task wait until others are completed."""
    return service.block(ctx.db, task, by, author(ctx))


@op(
    "task unblock",
    TASK,
    options("by", "The blocker to remove; without one, all of them."),
    needs="task.write",
    owns={"task": TASKS},
    view="tasks.one",
)
def unblock(ctx: Context, task: str, by: tuple[str, ...]) -> TaskView:
    """Let a task no longer wait."""
    return service.unblock(ctx.db, task, by, author(ctx))


@op("task next-ready", option("epic", "Only beneath this epic or task."), needs="task.read", view="tasks.offer")
def next_ready(ctx: Context, epic: str | None) -> TaskView | None:
    """Show the task to work on next, without taking it."""
    return service.next_ready(ctx.db, ctx.now(), epic)


@op(
    "task tree",
    arg("task", "Only this task and what is beneath it.", required=False),
    needs="task.read",
    view="tasks.tree",
)
def tree(ctx: Context, task: str | None) -> TaskTree | list[TaskTree]:
    """Show tasks as a tree; what is archived is left out at the top."""
    trees = service.tree(ctx.db, task)
    return trees if task is None else trees[0]


@op(
    "task search",
    arg("query", "Words that must all occur; the last one may be unfinished."),
    option("limit", "How many at most (50).", kind=INTEGER, default=50),
    needs="task.read",
    view="tasks.table",
)
def search(ctx: Context, query: str, limit: int) -> list[TaskView]:
    """Find tasks by their words, the best first."""
    return service.search(ctx.db, query, limit)


@op(
    "task progress",
    arg("task", "Only what is beneath this task.", required=False),
    needs="task.read",
    view="tasks.progress",
)
def progress(ctx: Context, task: str | None) -> Progress:
    """Show how far the project, or one part of it, is."""
    return service.progress(ctx.db, task, ctx.now())
