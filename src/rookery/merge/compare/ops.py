"""The operation that compares the attempts at a task."""

from __future__ import annotations

from typing import Annotated

from rookery.merge.compare import service
from rookery.merge.compare.service import Comparison
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, BRANCHES, PROCESS, WORK, Doc, Owns, Ref, op


@op("compare", needs="task.write", long=True, touches=PROCESS, view="agents.compared")
def compare(
    ctx: Context,
    task: Annotated[str, Owns(WORK), Doc("The task's id, or the agent that works on it.")],
    *,
    keep: Annotated[str | None, Ref(AGENTS), Doc("Make this agent's branch the task's branch, in review.")] = None,
    into: Annotated[
        str | None, Ref(BRANCHES), Doc("The branch that they land on, instead of the project's base.")
    ] = None,
) -> Comparison:
    """Compare the attempts at a task: what each changed, what gates said, what it cost, whether it merges cleanly.

    With `--keep` one of them is handed in for review. The branches of the others stay.
    """
    merger = Merger(ctx, ctx.actor)
    base = merger.base(into)
    if keep is not None:
        service.keep(merger, task, keep)
    return service.compare(merger, task, base)
