"""What we offer of learnings."""

from __future__ import annotations

from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import LEARNINGS, LONG_TEXT, Doc, Owns, op
from rookery.tasks import learnings, store
from rookery.tasks.model import Learning
from rookery.tasks.ops import OwnTaskArg, TaskArg, author
from rookery.tasks.service import check_query


@op("learning add", needs="learning.write", view="learnings.one")
def add(
    ctx: Context,
    task: OwnTaskArg,
    text: Annotated[str, LONG_TEXT, Doc("What was found out.")],
    *,
    source: Annotated[str | None, Doc("The task that it came from, if it is another one.")] = None,
) -> Learning:
    """Write down something that was learned at a task.

    Agents that work under that task see it; when the task is completed, it goes up to the parent.
    """
    by = author(ctx)
    with ctx.db.write() as db:
        origin = None if source is None else store.resolve(db, source)
        return learnings.add(db, store.resolve(db, task), text, by, source=origin)


@op("learning list", needs="learning.read", view="learnings.table")
def list_learnings(ctx: Context, task: TaskArg) -> list[Learning]:
    """List a task's own learnings, oldest first."""
    with ctx.db.read() as db:
        task_id = store.resolve(db, task)
        return store.learnings(db, [task_id]).get(task_id, [])


@op("learning search", needs="learning.read", view="learnings.table")
def search(
    ctx: Context,
    query: Annotated[str, Doc("Words that must all occur; the last one may be unfinished.")],
    *,
    limit: Annotated[int, Doc("How many at most (50).")] = 50,
) -> list[Learning]:
    """Search learnings, the best matches first."""
    check_query(query)
    return store.search_learnings(ctx.db, query, limit)


@op("learning delete", needs="learning.write", view="learnings.deleted")
def delete(
    ctx: Context, learning: Annotated[str, Owns(LEARNINGS), Doc("The learning's id, or its beginning or end.")]
) -> Learning:
    """Forget a learning; copies that went up the tree stay."""
    by = author(ctx)
    with ctx.db.write() as db:
        known = store.get_learning(db, store.resolve_learning(db, learning))
        store.delete_learning(db, known.id, by)
        return known
