"""The operation of the radar."""

from __future__ import annotations

from typing import Annotated

from rookery.merge.merger import Merger
from rookery.merge.radar.service import Scan, scan
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, BRANCHES, NOTHING, PROCESS, Doc, Ref, op


@op("radar", needs="mail.write", long=True, touches=PROCESS, owns=NOTHING, view="vcs.radar")
def radar(
    ctx: Context,
    name: Annotated[str | None, Ref(AGENTS), Doc("Only what overlaps with this branch, or this agent's.")] = None,
    *,
    into: Annotated[
        str | None, Ref(BRANCHES), Doc("The branch that they land on, instead of the project's base.")
    ] = None,
) -> Scan:
    """Show which unlanded branches changed the same files, and which of them would conflict.

    An agent's last snapshot counts, so that work which is not committed yet is seen too. Agents whose work overlaps
    are warned by mail, once for each file.
    """
    merger = Merger(ctx, ctx.actor)
    return scan(merger, merger.base(into), only=name)
