"""What landing adds to worktrees."""

from __future__ import annotations

from rookery.merge.desk import Desk
from rookery.merge.rebase import Rebased
from rookery.merge.rebase import rebase as carry_out
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, arg, op, option
from rookery.sessions.home import Home


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
    desk = Desk(Home.of(ctx), ctx.actor)
    return carry_out(desk, name, desk.base(onto))
