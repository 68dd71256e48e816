"""What landing adds to runs."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState, NotFound
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED
from rookery.merge.undo import Undone
from rookery.merge.undo import undo as carry_out
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, RUNS, Doc, Ref, op
from rookery.sessions import store as agents


@op("run undo", needs="run.write", long=True, touches=PROCESS, owns=NOTHING, view="merges.undone")
def undo(ctx: Context, run: Annotated[str, Ref(RUNS), Doc("The run's id, or the beginning of it.")]) -> list[Undone]:
    """Take back all that a run has landed, the newest first: code and tasks; everybody concerned is told.

    What was on the base stays kept under `refs/rookery/rescue/undo/`.
    """
    fitting = [each for each in agents.runs(ctx.db) if each.id.startswith(run)]
    if not fitting:
        raise NotFound(f"no run {run}", hint="`rook run list` shows them")
    alive = [each.agent for each in agents.sessions(ctx.db, alive=True, run_id=fitting[0].id)]
    if alive:
        raise InvalidState(f"{', '.join(alive)} are still alive", hint="`rook stop` them, or wait")
    merger = Merger(ctx, ctx.actor, ctx.follow)
    landed = store.select(ctx.db, states=(LANDED,), run_id=fitting[0].id)
    return carry_out(merger, [each for each in landed if each.base_before is not None])
