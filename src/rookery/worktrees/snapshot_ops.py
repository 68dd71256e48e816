"""What we offer of the snapshots of an agent's turns."""

from __future__ import annotations

from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, Ref, op
from rookery.worktrees.snapshots import Restored, Snapshot, list_snapshots
from rookery.worktrees.snapshots import restore as bring_back


@op("agent snapshots", needs="agent.read", view="worktrees.snapshots")
def snapshots(ctx: Context, name: Annotated[str, Ref(AGENTS), Doc("The agent.")]) -> list[Snapshot]:
    """List the snapshots of an agent's worktree, one for each turn, with what each turn changed."""
    return list_snapshots(ctx, name)


@op("agent restore", needs="worktree.write", long=True, touches=PROCESS, view="worktrees.restored")
def restore(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent.")],
    *,
    turn: Annotated[int, Doc("The turn of its last life to go back to.")],
    force: Annotated[bool, Doc("Also where changes are not committed; they are saved first.")] = False,
) -> Restored:
    """Make an agent's worktree as it was at the end of a turn.

    Its branch stays where it is. What was there before is kept under `refs/rookery/rescue/`. A worktree that was
    cleaned is made again, without its provisioning.
    """
    return bring_back(ctx, name, turn, force=force, actor=ctx.actor)
