"""Removes a worktree so that a kill at any point is followed up, and publishes its event once, when it is gone.

A row of `cleanings` says what is about to happen before anything is touched. The transaction that publishes
`worktree.cleaned` deletes it. So a row whose process is dead is a cleaning that was cut off: if the folder is still in
its place, nothing has happened and the row is dropped; if it is gone, the rest is done and published.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from rookery.base import call as calls
from rookery.base.errors import InvalidState
from rookery.config import layout, steps
from rookery.config.project import make_state_folder, root_of, to_stored
from rookery.events.store import publish
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes import locks
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.vcs.backend import Vcs
from rookery.vcs.folders import delete_aside
from rookery.vcs.model import RefMoved
from rookery.vcs.ref_names import RESCUE, UNDONE_WORK, undone_name
from rookery.worktrees import store
from rookery.worktrees.service import open_repository
from rookery.worktrees.store import Cleaning


@contextmanager
def alone(root: str) -> Iterator[None]:
    """Let one process at a time remove worktrees: two at once would both publish it, and disturb each other."""
    path = layout.path(root, layout.CLEAN_LOCK)
    make_state_folder(os.path.dirname(path))
    with open(locks.open_file(path), "rb") as file:
        calls.lock(file.fileno())
        yield


@dataclass(frozen=True)
class Remover:
    """Removes worktrees of a project, and branches that have landed on its base."""

    ctx: Context

    @cached_property
    def vcs(self) -> Vcs:
        """The project's repository."""
        return open_repository(self.ctx)

    @cached_property
    def base(self) -> str | None:
        """The branch that work lands on, if it exists."""
        name = self.ctx.config.project.base or self.vcs.default_branch()
        return name if name is not None and self.vcs.branch_tip(name) is not None else None

    def remove(self, path: str, agent: str, branch: str, *, rescue: str | None, actor: str) -> bool:
        """Remove a worktree in which nothing is unsaved, and its branch if that has landed: True if it had.

        Under `alone`. Refused if the agent is alive: from then on its reopening waits for `alone`, so that none is at
        work in what goes. If it raises before the folder has left its place, everything is as it was.
        """
        ctx = self.ctx
        cleaning = Cleaning(path, agent, branch, rescue, _inode(path), actor, holders.myself(), ctx.now())
        with ctx.db.write() as db:
            session = sessions.living(db, agent)
            if session is not None:
                raise InvalidState(f"{agent} is {session.state}", hint=f"`rook stop {agent}` first")
            store.insert(db, cleaning)
        steps.reached("cleaning noted")
        try:
            if os.path.islink(path):
                os.unlink(path)  # the link alone: what it leads to is not ours
            self.vcs.remove_checkout(path)
        except BaseException:
            if _inode(path) == cleaning.inode:
                with ctx.db.write() as db:
                    store.forget(db, path)
            raise
        steps.reached("removed")
        is_deleted = self.delete_branch(branch, sessions.latest(ctx.db, agent))
        steps.reached("branch settled")
        _publish(ctx, cleaning)
        steps.reached("told")
        return is_deleted

    def settle_left(self, path: str) -> Cleaning | None:
        """Follow up a cleaning that was cut off; gives it if its worktree is gone now. Under `alone`."""
        ctx = self.ctx
        cleaning = store.find(ctx.db, path)
        if cleaning is None:
            return None
        inode = _inode(path)
        if inode is not None and inode == cleaning.inode:
            with ctx.db.write() as db:
                store.forget(db, path)  # nothing was removed, and what is in the folder may have changed since
            return None
        if inode is not None or sessions.living(ctx.db, cleaning.agent) is not None:
            delete_aside(path)  # there is, or will be, a new worktree in its place
        else:
            self.vcs.remove_checkout(path)
            self.delete_branch(cleaning.branch, sessions.latest(ctx.db, cleaning.agent))
        steps.reached("removed")
        _publish(ctx, cleaning)
        return cleaning

    def landed_tip(self, branch: str, session: Session | None) -> str | None:
        """The tip of an agent's branch if the base has its work, which was neither undone nor reverted; else None."""
        tip = self.vcs.branch_tip(branch) if branch else None
        if tip is None or self.base is None or branch == self.base:
            return None
        if session is not None and undone_name(session.branch) in self.vcs.saved_refs(UNDONE_WORK):
            return None
        if session is not None and tip == session.start_commit and self._is_saved_on(session.agent, tip):
            return None  # the agent has committed nothing, and goes on from here with what was saved
        since = None if session is None else session.base_commit
        return tip if self.vcs.has_landed(tip, self.base, since=since) else None

    def _is_saved_on(self, agent: str, tip: str) -> bool:
        """True if uncommitted work of an agent on top of a commit is kept under a rescue ref."""
        rescues = set(self.vcs.saved_refs(f"{RESCUE}{agent}/").values())
        parents = self.vcs.merging().store.read_parents("--no-walk", *rescues) if rescues else {}
        return any(tip in parents[commit] for commit in rescues)

    def delete_branch(self, branch: str, session: Session | None) -> bool:
        """Delete a branch that has landed on the base; any other stays."""
        tip = self.landed_tip(branch, session)
        if tip is None:
            return False
        try:
            self.vcs.delete_branch(branch, tip)
        except (RefMoved, InvalidState):
            return False
        return True


def _publish(ctx: Context, cleaning: Cleaning) -> None:
    """Publish the event and drop the row; nothing if another process has done so."""
    stored = to_stored(root_of(ctx.db.path), cleaning.path)
    data = {"path": stored, "branch": cleaning.branch, "rescue": cleaning.rescue}
    with ctx.db.write() as db:
        if store.forget(db, cleaning.path):
            publish(db, "worktree.cleaned", cleaning.agent, data, actor=cleaning.actor, at=ctx.now())


def _inode(path: str) -> int | None:
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None
