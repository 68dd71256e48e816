"""How much of a branch is on its base: from git's history and our records of what landed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.sessions import store as agents
from rookery.tasks import landed as task_landings
from rookery.tasks import store as tasks
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.landed import UNDO_TRAILER, Evidence, Landing
from rookery.vcs.git.repository import GitStore


class Unclear(InvalidState):
    """The base went through the tip of a branch and reverted it, and nothing says where its work began."""

    code = "unclear_branch"


@dataclass(frozen=True, slots=True)
class Redo(Record):
    """Work that landed and was reverted, as the difference of two commits."""

    old: str
    new: str
    brings: str
    """The commit that it came with."""


@dataclass(frozen=True, slots=True)
class Start(Record):
    """Where the work of a branch begins that its base lacks. Usually git finds that by itself."""

    redo: tuple[Redo, ...] = ()
    """Its landings that were reverted, the oldest first: all of them land again."""
    before: str | None = None
    """The base before the first of these."""
    hidden: tuple[str, ...] = ()
    """Commits whose work the base has squashed or rebased, so that its history does not show them."""
    settled: tuple[str, ...] = ()
    """Those of the hidden commits that hold nothing of what was reverted."""

    def known(self, onto: str) -> tuple[str, ...]:
        """The commits whose history does not count as the branch's own work when it lands on a commit."""
        return (self.before or onto, *self.settled)


def is_landed(merger: Merger, branch: str, tip: str, base: str) -> bool:
    """True if a base has all the work of a branch, and no undo or revert removed it again."""
    onto = merger.merging.tip(base)
    return onto is not None and would_be_landed(merger, merger.merging.store, branch, tip, base, onto)


def would_be_landed(merger: Merger, git: GitStore, branch: str, tip: str, base: str, onto: str) -> bool:
    """The same, if the base were at a commit, which a trial may have made."""
    return git_landed.has_landed(git, tip, onto, _evidence(merger, branch, base))


def landed_branches(merger: Merger, tips: Mapping[str, str], base: str) -> set[str]:
    """Of several branches, those with all of their work on a base."""
    onto = merger.merging.tip(base)
    if len(tips) == 1 and onto is not None:
        # One git command says this together with everything that building the candidate asks for.
        maybe = {name for name, tip in tips.items() if git_landed.compare(merger.merging.store, tip, onto).is_contained}
    else:
        maybe = merger.merging.landed_branches(base)
    recorded = store.landed_tips(merger.ctx.db, base)
    return {
        branch
        for branch, tip in tips.items()
        if (branch in maybe or (branch, tip) in recorded) and is_landed(merger, branch, tip, base)
    }


def start_of(merger: Merger, branch: str, tip: str, base: str) -> Start:
    """Where the work of a branch begins that its base lacks; raises Unclear if nothing says so."""
    git, onto = merger.merging.store, merger.merging.tip(base)
    if onto is None:
        return Start()
    landings = git_landed.landings(git, tip, onto, _evidence(merger, branch, base))
    undone = git_landed.undone(git, landings)
    if any(not landing.before for landing in undone):
        raise Unclear(
            f"{base} has reverted {branch}, and nothing says where its work began",
            hint=f"`git revert` the revert on a branch of its own, and land that; {undone[-1].reverted_by} reverted it",
        )
    standing = [landing.brings for landing in landings if landing.reverted_by is None]
    hidden = tuple(commit for commit in dict.fromkeys(standing) if not git.contains(commit, onto))
    if not undone:
        return Start(hidden=hidden, settled=hidden)
    settled = [commit for commit in hidden if not any(git.contains(landing.brings, commit) for landing in undone)]
    # What came together with the work of others is not brought back as a whole.
    redo = [_redo(merger, landing) for landing in undone] if all(landing.is_whole for landing in undone) else []
    return Start(tuple(redo), undone[0].before, hidden, tuple(settled))


def _redo(merger: Merger, landing: Landing) -> Redo:
    """How to bring a landing back: by the inverse of our undo where it was ours, else as it landed.

    A person's revert may change more than that.
    """
    revert = str(landing.reverted_by)
    if UNDO_TRAILER in merger.merging.message(revert):
        return Redo(revert, f"{revert}^1", landing.brings)
    return Redo(landing.before, landing.commit, landing.brings)


def _evidence(merger: Merger, branch: str, base: str) -> Evidence:
    """Where an agent's or a task's branch began, and our records of what landed."""
    sessions = agents.of_branch(merger.ctx.db, branch)
    began = sessions[0].base_commit if sessions else tasks.start_of_branch(merger.ctx.db, branch)
    return task_landings.evidence(merger.ctx.db, branch, base, began)
