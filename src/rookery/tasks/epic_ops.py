"""What we offer of epics: roots with a design. Everything that a task can do, an epic can do as a task."""

from __future__ import annotations

from rookery.base.errors import InvalidInput
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.ops.operation import INTEGER, TASKS, arg, flag, op, option, options
from rookery.tasks import lifecycle, service
from rookery.tasks.listing_store import DEFAULT_LIMIT, Query
from rookery.tasks.model import DEFAULT_PRIORITY, STATES, Progress, TaskTree, TaskView
from rookery.tasks.ops import PRIORITY, REASON, author

_EPIC = arg("epic", "The epic's id, or the beginning of it.")
_DESIGN = option("design", "How it is to be built; Markdown.", long_text=True)


def _epic_id(db: Database, text: str) -> str:
    view = service.get(db, text)
    if view.depth:
        raise InvalidInput(f"{view.task.id} is a {view.kind}, not an epic", hint=f"`rook task get {view.task.id}`")
    return view.task.id


@op(
    "epic create",
    arg("title", "The milestone, in a few words."),
    option("description", "What is to be reached, at length.", long_text=True),
    option("context", "What everybody who works on it has to know.", long_text=True),
    _DESIGN,
    PRIORITY,
    options("blocked_by", "A task that has to be completed first; can be given several times."),
    needs="plan.write",
    owns={},
    view="tasks.one",
)
def create(
    ctx: Context,
    title: str,
    description: str | None,
    context: str | None,
    design: str | None,
    priority: int | None,
    blocked_by: tuple[str, ...],
) -> TaskView:
    """Add an epic with its design."""
    draft = service.Draft(
        title=title,
        description=description or "",
        context=context or "",
        design=design or "",
        priority=DEFAULT_PRIORITY if priority is None else priority,
        blocked_by=tuple(blocked_by),
    )
    return service.create(ctx.db, draft, author(ctx))


@op("epic get", _EPIC, needs="task.read", view="tasks.one")
def get(ctx: Context, epic: str) -> TaskView:
    """Show an epic with its design, learnings and blockers."""
    return service.get(ctx.db, _epic_id(ctx.db, epic))


@op(
    "epic list",
    option("state", "Only epics in this state.", choices=STATES),
    flag("open", "Only what is neither completed nor cancelled."),
    flag("completed", "Only what is completed."),
    flag("archived", "Only what is archived; it is left out otherwise."),
    option("limit", f"How many at most ({DEFAULT_LIMIT}; 0 for all).", kind=INTEGER),
    option("cursor", "The last epic of the page before: go on after it."),
    needs="task.read",
    view="tasks.table",
)
def list_epics(
    ctx: Context,
    state: str | None,
    open: bool,
    completed: bool,
    archived: bool,
    limit: int | None,
    cursor: str | None,
) -> list[TaskView]:
    """List epics, urgent first, then old first."""
    query = Query(
        kind="epic",
        state=state,
        open=open,
        completed=completed,
        archived=archived,
        limit=DEFAULT_LIMIT if limit is None else limit,
        cursor=cursor,
    )
    return service.list_tasks(ctx.db, query, ctx.now())


@op(
    "epic update",
    _EPIC,
    option("title", "A new title."),
    option("description", "A new description.", long_text=True),
    option("context", "A new context.", long_text=True),
    _DESIGN,
    PRIORITY,
    needs="epic.write",
    owns={"epic": TASKS},
    view="tasks.one",
)
def update(
    ctx: Context,
    epic: str,
    title: str | None,
    description: str | None,
    context: str | None,
    design: str | None,
    priority: int | None,
) -> TaskView:
    """Change an epic's words, design or priority."""
    given = {"title": title, "description": description, "context": context, "design": design, "priority": priority}
    changes = {name: value for name, value in given.items() if value is not None}
    return service.update(ctx.db, _epic_id(ctx.db, epic), author(ctx), changes)


@op("epic tree", _EPIC, needs="task.read", view="tasks.tree")
def tree(ctx: Context, epic: str) -> TaskTree:
    """Show an epic with everything beneath it."""
    return service.tree(ctx.db, _epic_id(ctx.db, epic))[0]


@op("epic progress", _EPIC, needs="task.read", view="tasks.progress")
def progress(ctx: Context, epic: str) -> Progress:
    """Show how far an epic is."""
    return service.progress(ctx.db, _epic_id(ctx.db, epic), ctx.now())


@op("epic cancel", _EPIC, REASON, needs="epic.write", owns={"epic": TASKS}, view="tasks.one")
def cancel(ctx: Context, epic: str, reason: str | None) -> TaskView:
    """Give an epic up, with everything unfinished beneath it."""
    return lifecycle.cancel(ctx.db, _epic_id(ctx.db, epic), author(ctx), reason=reason)


@op("epic reopen", _EPIC, needs="epic.write", owns={"epic": TASKS}, view="tasks.one")
def reopen(ctx: Context, epic: str) -> TaskView:
    """Take a finished epic up again."""
    return lifecycle.reopen(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op("epic archive", _EPIC, needs="epic.write", owns={"epic": TASKS}, view="tasks.one")
def archive(ctx: Context, epic: str) -> TaskView:
    """Put a finished epic away, with everything beneath it."""
    return lifecycle.archive(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op("epic unarchive", _EPIC, needs="epic.write", owns={"epic": TASKS}, view="tasks.one")
def unarchive(ctx: Context, epic: str) -> TaskView:
    """Bring an archived epic back, with everything beneath it."""
    return lifecycle.unarchive(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op(
    "epic delete",
    _EPIC,
    flag("force", "Also if somebody is at work beneath it."),
    needs="epic.write",
    owns={"epic": TASKS},
    view="tasks.deleted",
)
def delete(ctx: Context, epic: str, force: bool) -> dict[str, list[str]]:
    """Delete an epic with everything beneath it. Branches and commits stay."""
    return {"deleted": service.delete(ctx.db, _epic_id(ctx.db, epic), author(ctx), force=force)}
