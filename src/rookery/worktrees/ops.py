"""What we offer of worktrees."""

from __future__ import annotations

from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, op
from rookery.worktrees import cleaning
from rookery.worktrees.cleaning import Cleaned, Listed


@op("worktree list", needs="agent.read", view="worktrees.listing")
def list_all(ctx: Context, *, size: Annotated[bool, Doc("Measure them too.")] = False) -> list[Listed]:
    """List the worktrees of agents, and what is in them.

    Changed and untracked files, commits that the base branch does not contain, and ignored files that neither Rookery
    nor the setup command made are counted.
    """
    return cleaning.list_worktrees(ctx, size=size)


@op("worktree clean", needs="worktree.write", long=True, touches=PROCESS, view="worktrees.cleaned")
def clean(
    ctx: Context,
    name: Annotated[
        tuple[str, ...], Owns(AGENTS), Doc("Agents whose worktrees to remove; all that have ended unless given.")
    ] = (),
    *,
    completed: Annotated[bool, Doc("Only of agents that completed their work.")] = False,
    all: Annotated[bool, Doc("Also worktrees that belong to no agent on record.")] = False,
    ignored: Annotated[bool, Doc("Save ignored files that the agent made, too.")] = False,
    force: Annotated[bool, Doc("Save ignored files however large they are.")] = False,
    dry_run: Annotated[bool, Doc("Only say what would be done.")] = False,
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
