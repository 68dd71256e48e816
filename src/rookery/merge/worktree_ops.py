"""What landing adds to worktrees."""

from __future__ import annotations

from typing import Annotated

from rookery.merge.merger import Merger
from rookery.merge.rebase import Rebased
from rookery.merge.rebase import rebase as carry_out
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, op


@op("worktree rebase", needs="vcs.write", long=True, touches=PROCESS, view="merges.rebased")
def rebase(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent whose worktree it is.")],
    *,
    onto: Annotated[str | None, Doc("The branch to rebase on, instead of the project's base.")] = None,
) -> Rebased:
    """Bring an agent's branch onto its base as it is now, in place.

    The worktree must be clean. Where a commit conflicts, the files are named and nothing is changed. The branch as it
    was stays kept under `refs/rookery/rescue/`.
    """
    merger = Merger(ctx, ctx.actor)
    return carry_out(merger, name, merger.base(onto))
