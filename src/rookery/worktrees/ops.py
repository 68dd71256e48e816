"""What we offer of worktrees."""

from __future__ import annotations

from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, arg, flag, op
from rookery.worktrees import cleaning
from rookery.worktrees.cleaning import Cleaned, Listed


@op("worktree list", flag("size", "Measure them too."), needs="agent.read", view="worktrees.listing")
def list_all(ctx: Context, size: bool) -> list[Listed]:
    """List the worktrees of agents, and what is in them.

    Changed and untracked files, commits that the base branch does not contain, and ignored files that neither Rookery
    nor the setup command made are counted.
    """
    return cleaning.list_worktrees(ctx, size=size)


@op(
    "worktree clean",
    arg("name", "Agents whose worktrees to remove; all that have ended unless given.", required=False, many=True),
    flag("completed", "Only of agents that completed their work."),
    flag("all", "Also worktrees that belong to no agent on record."),
    flag("ignored", "Save ignored files that the agent made, too."),
    flag("force", "Save ignored files however large they are."),
    flag("dry_run", "Only say what would be done."),
    needs="worktree.write",
    owns={"name": AGENTS},
    view="worktrees.cleaned",
)
def clean(
    ctx: Context, name: tuple[str, ...], completed: bool, all: bool, ignored: bool, force: bool, dry_run: bool
) -> list[Cleaned]:
    """Remove worktrees of agents that have ended, without losing anything.

    What is not committed is saved under `refs/rookery/rescue/` first. A branch is deleted only if the base branch
    contains it. A worktree that is locked or in use is kept.
    """
    return cleaning.clean_worktrees(
        ctx,
        names=name,
        completed=completed,
        everything=all,
        ignored=ignored,
        force=force,
        dry_run=dry_run,
        actor=ctx.actor,
    )
