"""What landing adds to worktrees."""

from __future__ import annotations

from rookery.merge.merger import Merger
from rookery.merge.rebase import Rebased
from rookery.merge.rebase import rebase as carry_out
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, arg, op, option


@op(
    "worktree rebase",
    arg("name", "The agent whose worktree it is."),
    option("onto", "The branch to rebase on, instead of the project's base."),
    needs="vcs.write",
    owns={"name": AGENTS},
    view="merges.rebased",
)
def rebase(ctx: Context, name: str, onto: str | None) -> Rebased:
    """Bring an agent's branch onto its base as it is now, in place.

    The worktree must be clean. Where a commit conflicts, the files are named and nothing is changed. The branch as it
    was stays kept under `refs/rookery/rescue/`.
    """
    merger = Merger(ctx, ctx.actor)
    return carry_out(merger, name, merger.base(onto))
