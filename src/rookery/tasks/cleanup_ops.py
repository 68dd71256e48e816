"""What we offer for tidying up after tasks."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, Doc, op
from rookery.tasks.cleanup import Branch, clean_up


@op("vcs cleanup", needs="branch.write", long=True, touches=PROCESS, owns=NOTHING, view="vcs.cleanup")
def cleanup(
    ctx: Context,
    *,
    delete: Annotated[bool, Doc("Delete the branches that are removable; without it they are only listed.")] = False,
) -> list[Branch]:
    """List branches of finished tasks, or delete those whose work the base branch contains.

    A branch with work that has not landed, or that is checked out somewhere, is never deleted.
    """
    vcs = ctx.vcs()
    base = ctx.config.project.base or vcs.default_branch()
    if base is None:
        raise InvalidState("there is no base branch to compare with", hint="set project.base")
    return clean_up(ctx.db, vcs, base, delete=delete)
