"""Pure types of following an upstream."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.model import NOT_PUSHED, Pushed
from rookery.vcs.git.remote import DIVERGED, GONE

FORWARDED, MERGED = "fast-forwarded", "merged"


@dataclass(frozen=True, slots=True)
class CommitLine(Record):
    """A commit that only one side has."""

    commit: str
    author: str
    subject: str
    merge_id: str | None = None
    """The landing that it came with."""
    branch: str | None = None
    """The branch that landed so."""
    task_id: str | None = None
    title: str | None = None
    """The title of its task."""
    is_dropped: bool = False
    """The upstream had it, and was rewritten without it."""


@dataclass(frozen=True, slots=True)
class Synced(Record):
    """A base and its upstream: how they had come apart, and what was done about it."""

    base: str
    upstream: str
    """As in `origin/main`."""
    state: str
    """What was found: equal, behind, ahead, diverged, unpublished (the remote has no such branch), or gone."""
    before: str
    """The base's commit before."""
    commit: str
    """The base's commit now."""
    upstream_commit: str | None
    ahead: int
    """How many commits only the base had."""
    behind: int
    """How many commits only the upstream had."""
    ours: tuple[CommitLine, ...] = ()
    """The commits that only the base had, the newest first, without those that came by merges; 100 at most."""
    theirs: tuple[CommitLine, ...] = ()
    """The same of the upstream."""
    conflicts: tuple[dict[str, str], ...] = ()
    """What conflicts if the upstream is merged: paths, and git's word for the kind."""
    is_rewritten: bool = False
    """The upstream has lost commits that it had."""
    has_dropped: bool = False
    """The base still has some of these."""
    moved: str | None = None
    """How the base has moved: fast-forwarded or merged; None if it has not."""
    held: str | None = None
    """Why it has not, although it should have."""
    files: tuple[str, ...] = ()
    """The files that block it."""
    push: Pushed | None = None
    is_dry_run: bool = False
    """Nothing was changed; this is what would be found."""

    @property
    def exit_status(self) -> int:
        """1 if a person has something to do."""
        if self.is_dry_run:
            return 0
        is_apart = self.moved is None and self.state in (DIVERGED, GONE)
        has_failed = self.push is not None and self.push.state == NOT_PUSHED
        return 1 if is_apart or self.held or self.has_dropped or has_failed else 0
