"""What we offer of epics: roots with a design. Everything that a task can do, an epic can do as a task."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.ops.operation import LONG_TEXT, NOTHING, TASKS, Choices, Doc, Owns, Ref, op
from rookery.tasks import lifecycle, service
from rookery.tasks.listing_store import DEFAULT_LIMIT, Query
from rookery.tasks.model import DEFAULT_PRIORITY, STATES, Deleted, Progress, TaskTree, TaskView
from rookery.tasks.ops import PriorityOption, ReasonOption, author

EpicArg = Annotated[str, Ref(TASKS), Doc("The epic's id, or the beginning of it.")]
DesignOption = Annotated[str | None, LONG_TEXT, Doc("How it is to be built; Markdown.")]


def _epic_id(db: Database, text: str) -> str:
    view = service.get(db, text)
    if view.depth:
        raise InvalidInput(f"{view.task.id} is a {view.kind}, not an epic", hint=f"`rook task get {view.task.id}`")
    return view.task.id


@op("epic create", needs="plan.write", owns=NOTHING, view="tasks.one")
def create(
    ctx: Context,
    title: Annotated[str, Doc("The milestone, in a few words.")],
    *,
    description: Annotated[str | None, LONG_TEXT, Doc("What is to be reached, at length.")] = None,
    context: Annotated[str | None, LONG_TEXT, Doc("What everybody who works on it has to know.")] = None,
    design: DesignOption = None,
    priority: PriorityOption = None,
    blocked_by: Annotated[
        tuple[str, ...], Ref(TASKS), Doc("A task that has to be completed first; can be given several times.")
    ] = (),
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


@op("epic get", needs="task.read", view="tasks.one")
def get(ctx: Context, epic: EpicArg) -> TaskView:
    """Show an epic with its design, learnings and blockers."""
    return service.get(ctx.db, _epic_id(ctx.db, epic))


@op("epic list", needs="task.read", view="tasks.table")
def list_epics(
    ctx: Context,
    *,
    state: Annotated[str | None, Choices(STATES), Doc("Only epics in this state.")] = None,
    open: Annotated[bool, Doc("Only what is neither completed nor cancelled.")] = False,
    completed: Annotated[bool, Doc("Only what is completed.")] = False,
    archived: Annotated[bool, Doc("Only what is archived; it is left out otherwise.")] = False,
    limit: Annotated[int | None, Doc(f"How many at most ({DEFAULT_LIMIT}; 0 for all).")] = None,
    cursor: Annotated[str | None, Doc("The last epic of the page before: go on after it.")] = None,
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


@op("epic update", needs="epic.write", view="tasks.one")
def update(
    ctx: Context,
    epic: Annotated[EpicArg, Owns(TASKS)],
    *,
    title: Annotated[str | None, Doc("A new title.")] = None,
    description: Annotated[str | None, LONG_TEXT, Doc("A new description.")] = None,
    context: Annotated[str | None, LONG_TEXT, Doc("A new context.")] = None,
    design: DesignOption = None,
    priority: PriorityOption = None,
) -> TaskView:
    """Change an epic's words, design or priority."""
    given = {"title": title, "description": description, "context": context, "design": design, "priority": priority}
    changes = {name: value for name, value in given.items() if value is not None}
    return service.update(ctx.db, _epic_id(ctx.db, epic), author(ctx), changes)


@op("epic tree", needs="task.read", view="tasks.tree")
def tree(ctx: Context, epic: EpicArg) -> TaskTree:
    """Show an epic with everything beneath it."""
    return service.tree(ctx.db, _epic_id(ctx.db, epic))[0]


@op("epic progress", needs="task.read", view="tasks.progress")
def progress(ctx: Context, epic: EpicArg) -> Progress:
    """Show how far an epic is."""
    return service.progress(ctx.db, _epic_id(ctx.db, epic), ctx.now())


@op("epic cancel", needs="epic.write", view="tasks.one")
def cancel(ctx: Context, epic: Annotated[EpicArg, Owns(TASKS)], *, reason: ReasonOption = None) -> TaskView:
    """Give an epic up, with everything unfinished beneath it."""
    return lifecycle.cancel(ctx.db, _epic_id(ctx.db, epic), author(ctx), reason=reason)


@op("epic reopen", needs="epic.write", view="tasks.one")
def reopen(ctx: Context, epic: Annotated[EpicArg, Owns(TASKS)]) -> TaskView:
    """Take a finished epic up again."""
    return lifecycle.reopen(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op("epic archive", needs="epic.write", view="tasks.one")
def archive(ctx: Context, epic: Annotated[EpicArg, Owns(TASKS)]) -> TaskView:
    """Put a finished epic away, with everything beneath it."""
    return lifecycle.archive(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op("epic unarchive", needs="epic.write", view="tasks.one")
def unarchive(ctx: Context, epic: Annotated[EpicArg, Owns(TASKS)]) -> TaskView:
    """Bring an archived epic back, with everything beneath it."""
    return lifecycle.unarchive(ctx.db, _epic_id(ctx.db, epic), author(ctx))


@op("epic delete", needs="epic.write", view="tasks.deleted")
def delete(
    ctx: Context,
    epic: Annotated[EpicArg, Owns(TASKS)],
    *,
    force: Annotated[bool, Doc("Also if somebody is at work beneath it.")] = False,
) -> Deleted:
    """Delete an epic with everything beneath it. Branches and commits stay."""
    return Deleted(tuple(service.delete(ctx.db, _epic_id(ctx.db, epic), author(ctx), force=force)))
