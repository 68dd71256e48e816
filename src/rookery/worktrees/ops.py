"""What we offer of worktrees, and of their snapshots at the end of every turn."""

from __future__ import annotations

from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, Ref, op
from rookery.worktrees.cleaning import Cleaned, Cleaner, Listed, list_worktrees
from rookery.worktrees.snapshots import Restored, Snapshot, list_snapshots, restore_snapshot


@op("worktree list", needs="agent.read", view="worktrees.listing")
def list_all(ctx: Context, *, size: Annotated[bool, Doc("Measure them too.")] = False) -> list[Listed]:
    """List the worktrees of agents, and what is in them.

    Changed and untracked files, commits that the base branch does not contain, and ignored files that neither Rookery
    nor the setup command created are counted.
    """
    return list_worktrees(ctx, size=size)


@op("worktree clean", needs="worktree.write", long=True, touches=PROCESS, view="worktrees.cleaned")
def clean(
    ctx: Context,
    name: Annotated[
        tuple[str, ...], Owns(AGENTS), Doc("Agents whose worktrees to remove; all that have ended unless given.")
    ] = (),
    *,
    completed: Annotated[bool, Doc("Only of agents that completed their work.")] = False,
    all: Annotated[bool, Doc("Also worktrees that belong to no agent on record.")] = False,
    ignored: Annotated[bool, Doc("Save ignored files that the agent created, too.")] = False,
    force: Annotated[bool, Doc("Save ignored files however large they are.")] = False,
    dry_run: Annotated[bool, Doc("Only say what would be done.")] = False,
) -> list[Cleaned]:
    """Remove worktrees of agents that have ended, without losing anything.

    What is not committed is saved under `refs/rookery/rescue/` first. A branch is deleted only if the base branch
    contains it. A worktree that is locked or in use is kept.
    """
    return Cleaner(ctx, ignored, force, dry_run, ctx.actor).clean(name, completed=completed, everything=all)


@op("worktree snapshots", needs="agent.read", view="worktrees.snapshots")
def snapshots(ctx: Context, name: Annotated[str, Ref(AGENTS), Doc("The agent.")]) -> list[Snapshot]:
    """List the snapshots of an agent's worktree, one for each turn, with what each turn changed."""
    return list_snapshots(ctx, name)


@op("worktree restore", needs="worktree.write", long=True, touches=PROCESS, view="worktrees.restored")
def restore(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent.")],
    *,
    turn: Annotated[int, Doc("The turn of its last session to restore.")],
    force: Annotated[bool, Doc("Also where changes are not committed; they are saved first.")] = False,
) -> Restored:
    """Restore an agent's worktree to the end of a turn.

    Its branch stays where it is. What was there before is kept under `refs/rookery/rescue/`. A worktree that was
    cleaned is created again, without its provisioning.
    """
    return restore_snapshot(ctx, name, turn, force=force, actor=ctx.actor)
