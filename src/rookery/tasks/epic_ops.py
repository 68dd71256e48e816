"""What we offer of epics: tasks at the root, with a design. Each operation is that of tasks, on an epic."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.page import Page
from rookery.ops.context import Context
from rookery.ops.operation import LONG_TEXT, NOTHING, TASKS, Choices, Doc, Owns, Ref, op
from rookery.tasks import ops, service
from rookery.tasks.model import STATES, Deleted, Progress, TaskTree, TaskView
from rookery.tasks.ops import (
    ArchivedFlag,
    BlockersOption,
    CompletedFlag,
    LimitOption,
    NewContextOption,
    NewDescriptionOption,
    NewTitleOption,
    OpenFlag,
    PriorityOption,
    ReasonOption,
    author,
    present,
)
from rookery.tasks.service import Draft

EpicArg = Annotated[str, Ref(TASKS), Doc("The epic's id, or its beginning or end.")]
OwnEpicArg = Annotated[EpicArg, Owns(TASKS)]
DesignOption = Annotated[str | None, LONG_TEXT, Doc("How to build it; Markdown.")]


def _epic_id(ctx: Context, text: str) -> str:
    view = service.get(ctx.db, text)
    if view.depth:
        raise InvalidInput(f"{view.task.id} is a {view.kind}, not an epic", hint=f"`rook task get {view.task.id}`")
    return view.task.id


@op("epic create", needs="plan.write", owns=NOTHING, view="tasks.one")
def create(
    ctx: Context,
    title: Annotated[str, Doc("The milestone, in a few words.")],
    *,
    description: Annotated[str | None, LONG_TEXT, Doc("What it should achieve, at length.")] = None,
    context: Annotated[str | None, LONG_TEXT, Doc("What all agents that work on it have to know.")] = None,
    design: DesignOption = None,
    priority: PriorityOption = None,
    blocked_by: BlockersOption = (),
) -> TaskView:
    """Add an epic with its design."""
    words = present(description=description, context=context, design=design, priority=priority)
    return service.create(ctx.db, Draft(title, blocked_by=blocked_by, **words), author(ctx))


@op("epic get", needs="task.read", view="tasks.one")
def get(ctx: Context, epic: EpicArg) -> TaskView:
    """Show an epic with its design, learnings and blockers."""
    return ops.get(ctx, _epic_id(ctx, epic))


@op("epic list", needs="task.read", view="tasks.table")
def list_epics(
    ctx: Context,
    *,
    state: Annotated[str | None, Choices(STATES), Doc("Only epics in this state.")] = None,
    open: OpenFlag = False,
    completed: CompletedFlag = False,
    archived: ArchivedFlag = False,
    limit: LimitOption = None,
    cursor: Annotated[str | None, Doc("The last epic of the page before: go on after it.")] = None,
) -> Page[TaskView]:
    """List epics, urgent first, then old first."""
    return ops.list_tasks(
        ctx, kind="epic", state=state, open=open, completed=completed, archived=archived, limit=limit, cursor=cursor
    )


@op("epic update", needs="epic.write", view="tasks.one")
def update(
    ctx: Context,
    epic: OwnEpicArg,
    *,
    title: NewTitleOption = None,
    description: NewDescriptionOption = None,
    context: NewContextOption = None,
    design: DesignOption = None,
    priority: PriorityOption = None,
) -> TaskView:
    """Change an epic's texts, design or priority."""
    changes = present(title=title, description=description, context=context, design=design, priority=priority)
    return service.update(ctx.db, _epic_id(ctx, epic), author(ctx), changes)


@op("epic tree", needs="task.read", view="tasks.tree")
def tree(ctx: Context, epic: EpicArg, *, all: ops.AllTreeFlag = False) -> TaskTree:
    """Show an epic with everything under it."""
    return service.tree(ctx.db, _epic_id(ctx, epic), 0 if all else ops.TREE_LIMIT)


@op("epic progress", needs="task.read", view="tasks.progress")
def progress(ctx: Context, epic: EpicArg) -> Progress:
    """Show the progress of an epic."""
    return ops.progress(ctx, _epic_id(ctx, epic))


@op("epic cancel", needs="epic.write", view="tasks.one")
def cancel(ctx: Context, epic: OwnEpicArg, *, reason: ReasonOption = None) -> TaskView:
    """Cancel an epic, with everything unfinished under it."""
    return ops.cancel(ctx, _epic_id(ctx, epic), reason=reason)


@op("epic fail", needs="epic.write", view="tasks.one")
def fail(ctx: Context, epic: OwnEpicArg, *, reason: ReasonOption = None) -> TaskView:
    """Record that an epic could not be done."""
    return ops.fail(ctx, _epic_id(ctx, epic), reason=reason)


@op("epic reopen", needs="epic.write", view="tasks.one")
def reopen(ctx: Context, epic: OwnEpicArg) -> TaskView:
    """Reopen a finished epic."""
    return ops.reopen(ctx, _epic_id(ctx, epic))


@op("epic archive", needs="epic.write", view="tasks.one")
def archive(ctx: Context, epic: OwnEpicArg) -> TaskView:
    """Archive a finished epic, with everything under it."""
    return ops.archive(ctx, _epic_id(ctx, epic))


@op("epic unarchive", needs="epic.write", view="tasks.one")
def unarchive(ctx: Context, epic: OwnEpicArg) -> TaskView:
    """Bring an archived epic back, with everything under it."""
    return ops.unarchive(ctx, _epic_id(ctx, epic))


@op("epic delete", needs="epic.write", view="tasks.deleted")
def delete(
    ctx: Context, epic: OwnEpicArg, *, force: Annotated[bool, Doc("Also if an agent is at work under it.")] = False
) -> Deleted:
    """Delete an epic with everything under it. Branches and commits stay."""
    return ops.delete(ctx, _epic_id(ctx, epic), force=force)
