"""What we offer of tasks with version control: beginning and finishing work."""

from __future__ import annotations

from rookery.ops.context import Context
from rookery.ops.operation import CHECKOUTS, INTEGER, TASKS, flag, op, option, options
from rookery.tasks import work
from rookery.tasks.model import TaskView
from rookery.tasks.ops import AGENT, TASK, author


@op(
    "task start",
    TASK,
    flag("checkout", "Also switch this checkout to the task's branch, if it is clean."),
    option("base", "The branch or commit to start from (config: project.base)."),
    AGENT,
    needs="task.write",
    owns={"task": TASKS, "checkout": CHECKOUTS},
    view="tasks.one",
)
def start(ctx: Context, task: str, checkout: bool, base: str | None, agent: str | None) -> TaskView:
    """Begin a task on a branch of its own; on a parent, begin the next task beneath it.

    The branch and the commit that it starts from are recorded. No checkout is touched unless `--checkout` says so.
    """
    return work.start(
        ctx.db,
        ctx.vcs(),
        task,
        author(ctx, agent),
        agent=agent or ctx.actor,
        base=base or ctx.config.project.base,
        checkout=checkout,
    )


@op(
    "task complete",
    TASK,
    option("result", "What came out of it.", long_text=True),
    options("learning", "Something that was found out; can be given several times."),
    AGENT,
    option("attempt", "Refuse unless this is still the current attempt.", kind=INTEGER),
    needs="task.write",
    owns={"task": TASKS},
    view="tasks.one",
)
def complete(
    ctx: Context,
    task: str,
    result: str | None,
    learning: tuple[str, ...],
    agent: str | None,
    attempt: int | None,
) -> TaskView:
    """Finish a task with the commit that holds its work.

    In a checkout of the task's branch, everything that is uncommitted there is committed first; elsewhere the
    branch's tip is recorded. Learnings go up to the parent, and parents with nothing left to do are finished too.
    """
    return work.complete(
        ctx.db,
        ctx.vcs(),
        task,
        author(ctx, agent),
        agent=agent or ctx.actor,
        attempt=attempt,
        result=result,
        learned=learning,
    )
