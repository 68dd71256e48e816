"""Pure types of reviews."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.model import LANDED, Entry, FailedGate, GateRun, Predicted
from rookery.sessions.model import Session
from rookery.tasks.model import OutsideFile
from rookery.tasks.reviews.store import ReviewStep
from rookery.vcs.model import FileDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Record):
    """A task whose work was handed in and has not landed."""

    PRINTS = "task_id"
    task_id: str
    title: str
    state: str
    branch: str | None
    agent: str | None
    """The agent that made the branch."""
    submitted_at: str
    attempt: int
    """The number of the task's present attempt."""
    attempts: int
    """How many came before it."""
    commit: str | None
    """The tip of the branch now."""
    is_moved: bool
    """The branch has moved since it was approved: it has to be approved again."""
    files: int
    added: int
    deleted: int
    gate: str | None
    """What the gates said last of its tree: `passed`, `failed: NAME` and the like."""
    outside: tuple[OutsideFile, ...]
    """Files that it changes outside of what its agent was given."""
    result: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDetails(Review):
    """What a reviewer needs to decide."""

    description: str
    base: str
    changes: tuple[FileDiff, ...]
    predicted: Predicted | None
    """How it would land on its base now."""
    gates: tuple[GateRun, ...]
    landing: Entry | None
    """Its newest entry in the merge queue."""
    steps: tuple[ReviewStep, ...]
    """When it was handed in, approved and sent back, in order, with the comments."""


@dataclass(frozen=True, slots=True)
class Decided(Record):
    """A decision about a review, and what became of it."""

    PRINTS = "task_id"
    task_id: str
    action: str
    state: str
    """The task's state now."""
    branch: str | None
    commit: str | None
    agent: str | None
    session: Session | None = None
    """The new session of its agent, if that was resumed."""
    is_told: bool = False
    """Its agent is alive and has the comment as mail."""
    problem: str = ""
    """Why its agent does not go on with it."""
    withdrawn: tuple[str, ...] = ()
    """Entries that were taken out of the merge queue."""
    landed: Entry | None = None
    """What became of its landing, if that was asked for too."""
    failed_gates: tuple[FailedGate, ...] = ()
    """What kept it from landing, if gates did."""

    @property
    def exit_status(self) -> int:
        """1 if it was to land and did not."""
        return 0 if self.landed is None or self.landed.state == LANDED else 1


@dataclass(frozen=True, slots=True)
class Resumed(Record):
    """An agent that was resumed."""

    PRINTS = "session"
    session: Session
    earlier: Session
    """Its session before this one."""
    is_recreated: bool
    """Its worktree was gone, and was made again from its branch."""
    restored: str | None
    """The ref with uncommitted work that was put back into it."""
    has_conversation: bool
    sent_back: str = ""
    """What was asked for, of work that was in review: that is withdrawn, until it is handed in again."""
    workers: tuple[str, ...] = ()
    """Its agents that ended before they were done, and stay ended until they are resumed too."""
