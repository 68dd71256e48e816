"""What we offer of tasks with version control: beginning and finishing work."""

from __future__ import annotations

from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, CHECKOUTS, LEARNINGS, LONG_TEXT, PROCESS, Doc, Owns, Ref, op
from rookery.tasks import work
from rookery.tasks.model import TaskView
from rookery.tasks.ops import AgentOption, OwnTaskArg, author


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
    origin = base or ctx.config.project.base
    return work.start(ctx.db, ctx.vcs(), task, author(ctx, agent), base=origin, checkout=checkout)


@op("task complete", needs="task.write", long=True, touches=PROCESS, view="tasks.one")
def complete(
    ctx: Context,
    task: OwnTaskArg,
    *,
    result: Annotated[str | None, LONG_TEXT, Doc("What came out of it.")] = None,
    learning: Annotated[
        tuple[str, ...], Ref(LEARNINGS), Doc("Something that was found out; can be given several times.")
    ] = (),
    agent: AgentOption = None,
    attempt: Annotated[int | None, Doc("Refuse unless this is still the current attempt.")] = None,
) -> TaskView:
    """Finish a task with the commit that holds its work.

    In a checkout of the task's branch, everything that is uncommitted there is committed first; elsewhere the
    branch's tip is recorded. Learnings go up to the parent, and parents with nothing left to do are finished too.
    """
    by = author(ctx, agent)
    return work.complete(ctx.db, ctx.vcs(), task, by, attempt=attempt, result=result, learned=learning)
