"""The operation of the remote."""

from __future__ import annotations

from typing import Annotated

from rookery.base import call as calls
from rookery.base.text import one_line, visible
from rookery.merge import push as pushing
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, NOTHING, PROCESS, Doc, Ref, op
from rookery.remote import service
from rookery.remote.model import Synced

_LISTED = 10


@op("sync", needs="remote.write", long=True, touches=PROCESS, owns=NOTHING, view="vcs.synced")
def sync(
    ctx: Context,
    *,
    push: Annotated[bool, Doc("Push what the upstream lacks; `remote.push` says when that happens unasked.")] = False,
    merge: Annotated[
        bool, Doc("If both have new commits, merge the upstream into the base, through the gates.")
    ] = False,
    into: Annotated[str | None, Ref(BRANCHES), Doc("The branch to bring up to date, instead of the base.")] = None,
    dry_run: Annotated[bool, Doc("Change nothing, here or there; show what would be found.")] = False,
) -> Synced:
    """Fetch the base's upstream and follow it; say what diverged.

    The base is moved forward as by a landing: its checkouts follow, and files with changes of their own are never
    touched. If both sides have new commits, nothing moves: they are listed, with what would conflict. Nothing is ever
    rebased or pushed by force.
    """
    merger = Merger(ctx, ctx.actor, ctx.follow)

    def agree(synced: Synced, count: int) -> bool:
        if not ctx.is_interactive:
            return False
        listed = "".join(f"  {visible(one_line(line.title or line.subject, 70))}\n" for line in synced.ours[:_LISTED])
        return calls.confirm(f"{listed}Push {pushing.commits(count)} of {synced.base} to {synced.upstream}?")

    return service.sync(merger, merger.base(into), push=push, merge=merge, dry_run=dry_run, agree=agree)
