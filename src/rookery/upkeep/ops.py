"""Operations of upkeep: backups, cleaning parts of the state, and taking a project away."""

from __future__ import annotations

import os
from typing import Annotated

from rookery.base.clock import parse_duration
from rookery.base.errors import InvalidInput, Refused, UsageError
from rookery.ops.context import Context
from rookery.ops.operation import FILE, NOTHING, PROCESS, Doc, op
from rookery.upkeep import backups, salvage
from rookery.upkeep.deinit import Deinit
from rookery.upkeep.model import MANUAL, Backup, Cleanup, Part, Removal, Restoration
from rookery.upkeep.parts import PARTS, Sweeper

YesFlag = Annotated[bool, Doc("Do not ask.")]


@op("backup", needs="data.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.backup")
def backup(ctx: Context) -> Backup:
    """Make a backup of the project's database now.

    Rookery makes one every day by itself. Tasks, mail, sessions and landings are in it; branches and worktrees are not,
    and neither are logs.
    """
    return backups.make_backup(ctx, MANUAL)


@op("restore", needs="data.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.restoration")
def restore(
    ctx: Context,
    backup: Annotated[str | None, Doc("The backup's name, or its beginning; without it they are listed.")] = None,
    *,
    yes: YesFlag = False,
) -> Restoration:
    """List the backups, or restore the database from one of them.

    The current content is kept as a backup, so a restore can be undone by another one; the files of a damaged database
    are moved away. No agent may be alive. Branches and worktrees stay as they are; what disagrees with them afterwards
    is listed.
    """
    root = salvage.root_of(ctx)
    if backup is None:
        return Restoration(tuple(backups.list_backups(root)))
    chosen = backups.find_backup(root, backup)
    _check_can_ask(ctx, yes, f"rook restore {chosen.name} --yes")
    question = "Replace all tasks, mail and sessions by this backup?"
    return backups.restore(ctx, chosen.name, lambda plan: yes or ctx.confirm(plan, question))


@op("clean", needs="data.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.cleanup")
def clean(
    ctx: Context,
    *,
    sessions: Annotated[bool, Doc("Ended sessions without a worktree or branch, with their logs and costs.")] = False,
    mail: Annotated[bool, Doc("Mail that was read, and answered if it was a question.")] = False,
    logs: Annotated[bool, Doc("What gates and ended agents printed.")] = False,
    metrics: Annotated[bool, Doc("Records of what ended agents did, call by call.")] = False,
    worktrees: Annotated[bool, Doc("Worktrees of ended agents; what is not committed is saved.")] = False,
    branches: Annotated[bool, Doc("Agents' branches whose work has landed, whatever their age.")] = False,
    specs: Annotated[bool, Doc("Specifications of finished tasks.")] = False,
    all: Annotated[bool, Doc("All of these.")] = False,
    unread: Annotated[bool, Doc("With --mail: also mail that was not read or answered.")] = False,
    older_than: Annotated[str | None, Doc("Only what is older, such as 7d.")] = None,
    dry_run: Annotated[bool, Doc("Only show what would be removed.")] = False,
    yes: YesFlag = False,
) -> Cleanup:
    """Show how large each part of the state is, or reset the parts that are named.

    Nothing of a living agent is removed, and no branch or file whose work has not landed. Tasks always stay.
    """
    wishes = (worktrees, branches, sessions, mail, logs, metrics, specs)
    names = [name for name, wish in zip(PARTS, wishes, strict=True) if wish or all]
    if unread and "mail" not in names:
        raise InvalidInput("--unread is for mail", hint="`rook clean --mail --unread`")
    sweeper = Sweeper(ctx, None if older_than is None else parse_duration(older_than), unread)
    parts = tuple(sweeper.look(name) for name in names or PARTS)
    if not names:
        return Cleanup(parts)
    plan = Cleanup(parts, is_plan=True)
    if dry_run or not any(part.count for part in parts):
        return plan
    _check_can_ask(ctx, yes, f"rook clean {' '.join(f'--{name}' for name in names)} --yes")
    if not yes and not ctx.confirm(plan, "Remove all this?"):
        raise Refused("nothing was removed", code="declined")
    return Cleanup(tuple(_remove(sweeper, part) for part in parts), is_done=True)


@op("deinit", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.removal")
def deinit(
    ctx: Context,
    *,
    keep_backup: Annotated[str | None, FILE, Doc("Copy the database to this file first.")] = None,
    force: Annotated[bool, Doc("Stop agents that are alive, and remove it even if work has not landed.")] = False,
    dry_run: Annotated[bool, Doc("Only show what would be removed.")] = False,
    yes: YesFlag = False,
) -> Removal:
    """Remove Rookery from a repository: `.rookery`, the worktrees, the daemon, and the hooks of your own session.

    Branches stay, and so does what is kept under `refs/rookery`; what was not committed in a worktree is saved there.
    Files of `.rookery` that are committed stay too. Refused while agents are alive, or while work has not landed.
    """
    remover = Deinit(ctx, None if keep_backup is None else os.path.normpath(os.path.join(ctx.cwd, keep_backup)), force)
    plan = remover.plan()
    if dry_run:
        return plan
    remover.check(plan)
    _check_can_ask(ctx, yes, "rook deinit --yes")
    if not yes and not ctx.confirm(plan, "Remove all this?"):
        raise Refused("nothing was removed", code="declined")
    return remover.remove(plan)


def _remove(sweeper: Sweeper, part: Part) -> Part:
    """Remove a part that was shown; its size is that of before."""
    return sweeper.remove(part.name).replace(size=part.size)


def _check_can_ask(ctx: Context, yes: bool, command: str) -> None:
    """Raise UsageError where there is no person to ask."""
    if not yes and not ctx.is_interactive:
        raise UsageError("this asks first, and there is no terminal to ask on", hint=f"`{command}` does it")
