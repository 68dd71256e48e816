"""Bringing an agent's branch onto its base as it is now, in place; if something conflicts, nothing is changed.

The commits are made again in the object database first. Only when all of them apply do the branch and the files move.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.events.store import publish
from rookery.merge.landing.candidate import replay
from rookery.merge.landing.history import start_of
from rookery.merge.landing.land import checkouts_following
from rookery.merge.merger import Merger
from rookery.sessions import store as agents
from rookery.sessions.model import WORKING, NoSuchAgent, check_not_taken
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.model import DirtyCheckout
from rookery.vcs.ref_names import SAVED, rescue_name
from rookery.worktrees import service as worktrees


@dataclass(frozen=True, slots=True)
class Rebased(Record):
    """What became of a branch."""

    PRINTS = "agent"
    agent: str
    branch: str
    base: str
    before: str
    after: str
    commits: int
    """How many were made again."""
    conflicts: tuple[dict[str, str], ...] = ()
    """The files that conflict; then nothing was changed."""
    rescue: str = ""
    """The ref that keeps the branch as it was."""

    @property
    def exit_status(self) -> int:
        """1 if it conflicts."""
        return 1 if self.conflicts else 0


def rebase(merger: Merger, agent: str, base: str) -> Rebased:
    """Rebase an agent's branch in its worktree, if that is clean."""
    session = agents.latest(merger.ctx.db, agent)
    if session is None:
        raise NoSuchAgent(f"no agent {agent}", hint="`rook status --all` lists all agents, also those that have ended")
    if session.is_alive and session.state == WORKING and merger.actor != agent:
        raise InvalidState(f"{agent} is at work in its worktree", hint="wait for its turn to end, or ask it by mail")
    check_not_taken(session, merger.actor)
    merging = merger.merging
    old, onto = merging.tip(session.branch), merging.tip(base)
    if old is None or onto is None:
        raise InvalidState(f"there is no branch {session.branch if old is None else base}", hint="it may have landed")
    check_free(merging.store, session.branch)
    _check_clean(merger, session.worktree, session.branch)
    commits = merging.own_commits(start_of(merger, session.branch, old, base).known(onto), old)
    result = Rebased(agent, session.branch, base, old, old, 0)
    if merging.store.contains(onto, old):
        return result
    new = replay(merging, onto, commits)
    if not isinstance(new, str):
        return result.replace(conflicts=tuple({"path": conflict.path, "kind": conflict.kind} for conflict in new))
    rescue = rescue_name(agent, merger.ctx.now())
    merging.keep(rescue, old)
    begun = merging.begin_forward(session.branch, old, new)
    with checkouts_following(merger, session.branch, new, begun):
        merging.move(session.branch, new, old, f"rebase onto {base}")
    merging.settle()
    result = result.replace(after=new, commits=merging.store.count_commits(new, onto), rescue=SAVED + rescue)
    with merger.ctx.db.write() as db:
        publish(db, "worktree.rebased", agent, result.as_dict(), actor=merger.actor, at=merger.ctx.now())
    return result


def _check_clean(merger: Merger, path: str, branch: str) -> None:
    """Raise unless the worktree, if it is there, holds nothing that is not committed."""
    if not os.path.lexists(path):
        return
    here = worktrees.check(path, merger.ctx.config.vcs, branch=branch)
    step = here.running_step()
    if step is not None:
        raise InvalidState(f"a {step} is under way in {path}", hint=f"finish it, or `git {step} --abort` there")
    changes = here.status().changes
    if changes:
        paths = ", ".join(change.path for change in changes[:3])
        raise DirtyCheckout(f"{path} has changes that are not committed: {paths}", hint="commit them first")
