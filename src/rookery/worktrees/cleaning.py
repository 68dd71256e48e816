"""Removes worktrees without losing anything.

What is not committed is saved under `refs/rookery/rescue/<agent>/<time>` first, a branch is deleted only if the base
contains it, and a worktree that cannot be saved stays, with the reason. The order of the steps makes a kill harmless:
the rescue first, then the folder and the branch, and the event last (`worktrees/removal.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from rookery.base.errors import InvalidState, Refused
from rookery.base.record import Record
from rookery.base.text import plural
from rookery.config import steps
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import COMPLETED, RESERVED, NoSuchAgent, Session, last_by
from rookery.vcs.detect import detect, open_vcs
from rookery.vcs.folders import aside_of, tree_size
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.unfinished import is_unfinished
from rookery.vcs.model import GIT, RefMoved
from rookery.vcs.ref_names import AGENT_BRANCHES, RESCUE, SAVED, rescue_name
from rookery.worktrees import service as worktrees
from rookery.worktrees.place import agents_on_disk, default_folder
from rookery.worktrees.removal import Remover, alone
from rookery.worktrees.service import WorktreeState
from rookery.worktrees.store import pending

REMOVED = "removed"
REMOVABLE = "removable"
KEPT = "kept"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Worktree(Record):
    """A worktree and the last session of its agent, if there was one."""

    agent: str
    path: str
    branch: str
    session: Session | None


@dataclass(frozen=True, slots=True)
class Listed(Record):
    """A worktree as it is listed. `state` and `outcome` are those of its agent's last session."""

    PRINTS = "agent"
    agent: str
    path: str
    branch: str
    state: str | None
    outcome: str | None
    worktree: WorktreeState
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Cleaned(Record):
    """What happened to a worktree, or would."""

    PRINTS = "agent"
    agent: str
    path: str
    verdict: str
    """`removed`, `kept`, or with a dry run `removable`."""
    reason: str = ""
    branch: str = ""
    branch_deleted: bool = False
    rescue: str | None = None
    """The whole name of the ref under which its work was saved."""
    restore_with: str = ""
    """A command that brings the saved work back."""
    ignored: int = 0
    """Ignored files of the agent that were deleted with it, unsaved."""


def list_worktrees(ctx: Context, *, size: bool = False) -> list[Listed]:
    """Every agent's worktree, with what is in it."""
    remover = Remover(ctx)
    listed = []
    all_worktrees = _find_worktrees(remover)
    unmerged = worktrees.count_unmerged(remover.vcs, [worktree.branch for worktree in all_worktrees], remover.base)
    for worktree in all_worktrees:
        agent, path, branch, session = worktree.as_tuple()
        state = worktrees.inspect(ctx, path, branch, session, unmerged=unmerged[branch])
        listed.append(
            Listed(
                *(agent, path, branch),
                session.state if session else None,
                session.outcome if session else None,
                state,
                tree_size(path) if size and state.is_there else None,
            )
        )
    return listed


def _choose(
    all_worktrees: list[Worktree], names: Sequence[str], *, completed: bool, everything: bool
) -> list[Worktree]:
    known = {worktree.agent: worktree for worktree in all_worktrees}
    for name in names:
        if name not in known:
            raise NoSuchAgent(f"{name} has no worktree", hint="`rook worktree list` shows all of them")
        session = known[name].session
        if session is not None and session.is_alive:
            raise InvalidState(f"{name} is {session.state} in its worktree", hint=f"`rook stop {name}` first")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [
        worktree
        for worktree in all_worktrees
        if (everything if worktree.session is None else not worktree.session.is_alive)
        and (not completed or (worktree.session is not None and worktree.session.outcome == COMPLETED))
    ]


def _find_worktrees(remover: Remover) -> list[Worktree]:
    """Every worktree that exists, is registered, is being removed, or has left a branch that the base contains."""
    ctx = remover.ctx
    last = last_by("agent", store.sessions(ctx.db))
    registered, branches = remover.vcs.checkouts(), remover.vcs.branches(AGENT_BRANCHES)
    parent = default_folder(ctx.root)
    on_disk = os.listdir(parent) if os.path.isdir(parent) else []
    names = {name.removeprefix(".").removesuffix(".removed") if name[0] == "." else name for name in on_disk}
    begun = {cleaning.path for cleaning in pending(ctx.db)}
    # A session's own record goes first: its worktree may be elsewhere.
    paths = {name: os.path.join(parent, name) for name in names}
    paths |= {os.path.basename(path): path for path in begun}
    paths |= {name: session.worktree for name, session in last.items()}
    result = []
    for name, path in sorted(paths.items()):
        session = last.get(name)
        branch = session.branch if session is not None else registered.get(path, "")
        is_there = os.path.lexists(path) or os.path.lexists(aside_of(path)) or path in begun or path in registered
        is_left = branch in branches and branch not in registered.values()
        if is_there or (is_left and remover.landed_tip(branch, session) is not None):
            result.append(Worktree(name, path, branch, session))
    return result


@dataclass(frozen=True)
class Cleaner(Remover):
    """Removes worktrees, all in the same way; what has to stay is kept, with the reason."""

    saves_ignored: bool = False
    """Save ignored files that the agent created, too."""
    force: bool = False
    """Save them however large they are."""
    dry_run: bool = False
    actor: str = "human"

    def clean(
        self,
        names: Sequence[str] = (),
        *,
        completed: bool = False,
        everything: bool = False,
        before: str | None = None,
    ) -> list[Cleaned]:
        """Remove the worktrees of the named agents, or of all that have ended, or that ended before a time.

        `completed` takes only agents that completed their work, `everything` also worktrees of no known agent. A named
        agent that is alive is refused before anything is touched.
        """
        cleaned = []
        if not self.dry_run:
            self._discard_unfinished()
        for worktree in _choose(_find_worktrees(self), names, completed=completed, everything=everything):
            if before is not None and (worktree.session is None or (worktree.session.ended_at or before) >= before):
                continue
            with nullcontext() if self.dry_run else alone(self.ctx.root):
                cleaned.append(self._clean_one(worktree))
        return cleaned

    def _discard_unfinished(self) -> None:
        """Remove halves of worktrees, whose making was killed: git would take what is missing in them for deleted."""
        for name in agents_on_disk(self.ctx):
            if self._unfinished(name) is None:
                continue
            with alone(self.ctx.root):
                session = self._unfinished(name)  # again: it may have been resumed
                # With files in it that no checkout wrote, it is saved and removed like a whole one.
                with suppress(InvalidState):
                    if session is not None:
                        worktrees.discard_unfinished(self.ctx, session)

    def _unfinished(self, name: str) -> Session | None:
        """The last session of an agent, if it has ended and the making of its worktree was killed."""
        session = store.latest(self.ctx.db, name)
        if session is None or session.is_alive:
            return None
        return session if session.step == RESERVED or is_unfinished(session.worktree) else None

    def _clean_one(self, worktree: Worktree) -> Cleaned:
        """Remove one worktree, or say why not."""
        verdict = Cleaned(worktree.agent, worktree.path, KEPT, branch=worktree.branch)
        try:
            return self._try_to_clean(worktree, verdict)
        except Refused as error:
            return verdict.replace(reason=error.message)

    def _try_to_clean(self, worktree: Worktree, verdict: Cleaned) -> Cleaned:
        agent, path, branch, session = worktree.as_tuple()
        cut_off = None if self.dry_run else self.settle_left(path)
        if cut_off is not None and not os.path.lexists(path):
            reason = self._why_branch_stays(branch) or "what a killed cleaning had begun is finished"
            return self._removed(verdict, cut_off.rescue, reason)
        state = worktrees.inspect(self.ctx, path, branch, session)
        reason = self._why_kept(worktree, state)
        if reason:
            return verdict.replace(reason=reason)
        lost = 0 if self.saves_ignored else len(state.ignored)
        if self.dry_run:
            what = "its work would be saved" if self._needs_rescue(state) else "nothing in it is unsaved"
            return verdict.replace(verdict=REMOVABLE, reason=what, ignored=lost)
        is_left = self._is_left(path, state)
        if not is_left and self.landed_tip(branch, session) is None:
            return verdict.replace(verdict=REMOVED, reason="another process has removed it just now")
        rescue = self._save(worktree, state)
        steps.reached("rescued")
        if is_left:
            is_deleted = self.remove(path, agent, branch, rescue=rescue, actor=self.actor)
        else:
            is_deleted = self.delete_branch(branch, session)
        reason = f"{branch} landed on {self.base}" if is_deleted else self._why_branch_stays(branch)
        return self._removed(verdict, rescue, reason).replace(branch_deleted=is_deleted, ignored=lost)

    def _removed(self, verdict: Cleaned, rescue: str | None, reason: str) -> Cleaned:
        restore_with = ""
        if rescue is not None and self.vcs.kind == GIT:
            restore_with = f"git branch rescued-{verdict.agent} {rescue}"
        elif rescue is not None:
            restore_with = f"git --git-dir=$(jj git root) branch rescued-{verdict.agent} {rescue} && jj git import"
        return verdict.replace(verdict=REMOVED, reason=reason, rescue=rescue, restore_with=restore_with)

    def _is_left(self, path: str, state: WorktreeState) -> bool:
        """True if the folder, what is left of it or its registration is there."""
        is_there = state.is_there or state.is_symlink or os.path.lexists(aside_of(path))
        return is_there or path in self.vcs.checkouts()

    def _why_kept(self, worktree: Worktree, state: WorktreeState) -> str:
        # Read again: it may have been resumed while other worktrees were cleaned.
        session = store.living(self.ctx.db, worktree.agent)
        if session is not None:
            return f"{worktree.agent} is {session.state}"
        if state.lock is not None:
            return f"it is locked: {state.lock}" if state.lock else "it is locked"
        if state.is_broken:
            return "it is no longer a checkout; move its files away"
        for name in state.inner:
            reason = self._why_inner_stays(os.path.join(worktree.path, name))
            if reason:
                return f"the repository {name} in it {reason}"
        if self.saves_ignored and not self.force:
            size = sum(os.lstat(os.path.join(worktree.path, name)).st_size for name in state.ignored)
            limit = self.ctx.config.worktrees.rescue_limit
            if size > limit * _MEGABYTE:
                return f"its ignored files take {size / _MEGABYTE:.0f} MB, more than {limit}; --force saves them"
        return ""

    def _why_inner_stays(self, path: str) -> str:
        """What only this repository inside a worktree holds: no snapshot of ours reaches into it."""
        if detect(path) != (GIT, os.path.realpath(path)):
            return "cannot be looked into"
        inner = Git(os.path.realpath(path), self.ctx.config.vcs.timeout)
        if not inner.status().is_clean:
            return "has changes that are not committed"
        count = inner.unpushed_commits()
        if count:
            return f"has {plural(count, 'commit')} that no remote has"
        return "holds repositories of its own" if inner.inner_repositories() else ""

    def _needs_rescue(self, state: WorktreeState) -> bool:
        if not state.is_there:
            return False
        if not state.is_clean or (self.saves_ignored and state.ignored):
            return True
        # Without a branch, nothing but this worktree keeps its commits.
        is_loose = state.branch is None and state.commit is not None
        return is_loose and (self.base is None or not self.vcs.has_landed(str(state.commit), self.base))

    def _save(self, worktree: Worktree, state: WorktreeState) -> str | None:
        """Keep what is not committed; returns the whole name of its ref. After a kill it is not done twice."""
        if not self._needs_rescue(state):
            return None
        here = open_vcs(worktree.path, self.ctx.config.vcs)
        ignored = frozenset(state.ignored) if self.saves_ignored else frozenset[str]()
        message = f"What {worktree.agent} had not committed in {worktree.path}"
        earlier = sorted(self.vcs.saved_refs(f"{RESCUE}{worktree.agent}/"))
        if earlier:
            with suppress(RefMoved):  # it holds something else
                here.snapshot(earlier[-1], message, include_ignored=ignored)
                return SAVED + earlier[-1]
        name = rescue_name(worktree.agent, self.ctx.now())
        here.snapshot(name, message, include_ignored=ignored)
        return SAVED + name

    def _why_branch_stays(self, branch: str) -> str:
        if not branch or self.vcs.branch_tip(branch) is None:
            return ""
        if self.base is None:
            return f"{branch} stays: there is no base to compare it with"
        count = self.vcs.count_commits(branch, self.base)
        if count:
            return f"{branch} stays: {self.base} lacks {count} of its commits"
        return f"{branch} stays: it is in use, or its landing was reverted"
