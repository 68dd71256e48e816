"""The worktree of an agent that is resumed: the one that it had, or another one on the same branch.

What was not committed when a worktree went is kept under a ref: by a cleaning as a rescue, else by the snapshot of the
last turn. It is put back if the branch is still where it was, so that it fits.
"""

from __future__ import annotations

import os

from rookery.base.errors import InvalidState
from rookery.config import steps
from rookery.config.environ import marked_children
from rookery.events.store import last_data
from rookery.ops.context import Context
from rookery.processes.proctable import SLING
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import open_vcs
from rookery.vcs.ref_names import SAVED, SNAPSHOTS, rescue_name
from rookery.worktrees import service as worktrees
from rookery.worktrees.place import make_parent
from rookery.worktrees.removal import alone
from rookery.worktrees.snapshots import last_snapshot


def check_branch(ctx: Context, session: Session) -> None:
    """Raise InvalidState if the branch of a session is gone with what it held: then there is nothing to go on with."""
    vcs = worktrees.open_repository(ctx)
    if vcs.branch_tip(session.branch) is None and not _held_nothing(vcs, session):
        task = '"…"' if session.task_id is None else session.task_id  # it was deleted
        again = f"`rook sling {task} --name {session.agent}` begins again"
        raise InvalidState(f"{session.branch}, the branch of {session.agent}, is gone", hint=again)


def reopen(ctx: Context, session: Session) -> None:
    """The worktree of a session on its branch: as it was left, or made again."""
    path, vcs = session.worktree, worktrees.open_repository(ctx)
    make_parent(ctx.root, path)
    with alone(ctx.root):  # a cleaning that has begun ends first, and no other begins: the agent is alive
        if os.path.lexists(path) and session.settings.is_new:
            raise InvalidState(f"{path} has appeared just now", hint="`rook worktree list` shows what it is")
        if not os.path.lexists(path) and not session.settings.is_new:
            raise InvalidState(f"{path} was removed just now", hint=f"`rook resume {session.agent}` makes it again")
        if session.settings.is_new:
            with marked_children(SLING, session.id):
                if vcs.branch_tip(session.branch) is None:
                    vcs.create_branch(session.branch, session.start_commit)  # a cleaning took it, empty as it was
                vcs.add_checkout(path, session.branch)
    steps.reached("worktree made")
    here = worktrees.check(path, ctx.config.vcs, branch=session.branch)
    if not worktrees.is_same_repository(here, vcs):  # the project is a copy, and this one is the original's
        raise worktrees.WrongWorktree(f"{path} belongs to another repository", hint="resume the agent in its project")


def restore_uncommitted(ctx: Context, session: Session, earlier: Session) -> str:
    """Put back what was not committed in the earlier session's worktree; the ref that holds it, or nothing.

    Files that are there already, such as those of the setup command, are kept under a rescue ref first.
    """
    vcs = worktrees.open_repository(ctx)
    tip = vcs.branch_tip(session.branch)
    name = kept_under(ctx, vcs, earlier)
    commit = vcs.saved_refs(name).get(name) if name else None
    if tip is None or commit is None or commit == tip:
        return ""
    if tip not in vcs.merging().store.read_parents("-1", commit)[commit]:
        return ""  # the branch has moved since, and the files would hide that
    open_vcs(session.worktree, ctx.config.vcs).restore(commit, rescue_name(session.agent, ctx.now()))
    steps.reached("work restored")
    return SAVED + name


def kept_under(ctx: Context, vcs: Vcs, earlier: Session) -> str:
    """The name of the ref that keeps the last content of a worktree; empty if nothing was left uncommitted.

    Rescues of the agent's other sessions do not count: they are older, or of another task.
    """
    later = (one.created_at for one in store.of_agent(ctx.db, earlier.agent) if one.created_at > earlier.created_at)
    since, before = earlier.created_at, next(later, None)
    cleaned = last_data(ctx.db, "worktree.cleaned", earlier.agent, since=since, before=before)
    if cleaned is not None:
        return str(cleaned["rescue"] or "").removeprefix(SAVED)
    last = last_snapshot(vcs.saved_refs(f"{SNAPSHOTS}{earlier.agent}/"), earlier)
    return "" if last is None else last[0]


def _held_nothing(vcs: Vcs, earlier: Session) -> bool:
    """True if the agent had committed nothing when its last turn ended, and changed no file."""
    last = last_snapshot(vcs.saved_refs(f"{SNAPSHOTS}{earlier.agent}/"), earlier)
    return last is not None and last[1] == earlier.start_commit
