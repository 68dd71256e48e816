"""What we offer of learnings."""

from __future__ import annotations

from rookery.ops.context import Context
from rookery.ops.operation import INTEGER, LEARNINGS, TASKS, arg, op, option
from rookery.tasks import learnings
from rookery.tasks.model import Learning
from rookery.tasks.ops import TASK, author


@op(
    "learning add",
    TASK,
    arg("text", "What was found out.", long_text=True),
    option("source", "The task that it came from, if it is another one."),
    needs="learning.write",
    owns={"task": TASKS},
    view="learnings.one",
)
def add(ctx: Context, task: str, text: str, source: str | None) -> Learning:
    """Keep something that was found out at a task.

    Whoever works beneath that task sees it; when the task is completed, it goes up to the parent.
    """
    return learnings.add(ctx.db, task, text, author(ctx), source=source)


@op("learning list", TASK, needs="learning.read", view="learnings.table")
def list_learnings(ctx: Context, task: str) -> list[Learning]:
    """List a task's own learnings, oldest first."""
    return learnings.list_of(ctx.db, task)


@op(
    "learning search",
    arg("query", "Words that must all occur; the last one may be unfinished."),
    option("limit", "How many at most (50).", kind=INTEGER, default=50),
    needs="learning.read",
    view="learnings.table",
)
def search(ctx: Context, query: str, limit: int) -> list[Learning]:
    """Find learnings by their words, the best first."""
    return learnings.search(ctx.db, query, limit)


@op(
    "learning delete",
    arg("learning", "The learning's id, or the beginning of it."),
    needs="learning.write",
    owns={"learning": LEARNINGS},
    view="learnings.deleted",
)
def delete(ctx: Context, learning: str) -> Learning:
    """Forget a learning; copies that went up the tree stay."""
    return learnings.delete(ctx.db, learning, author(ctx))
