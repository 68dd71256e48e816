"""Pure types: a conflict that is open for a person, both sides of it, and what became of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.config import layout
from rookery.merge.model import Entry, Outcome

MAKING, READY, CLOSING = "making", "ready", "closing"
"""How far the worktree is: no person was told of it before it is ready."""
NOTES = "ROOK-CONFLICTS.md"
"""The file in the worktree that explains both sides; git never commits it."""
_SHORT = 8

IN_HAND, HAS_LANDED, NOT_LANDED, GIVEN_UP = "open", "landed", "not landed", "given up"


@dataclass(frozen=True, slots=True)
class OpenConflict(Record):
    """A conflict that is open for a person, or is being opened or closed."""

    merge_id: str
    step: str
    base_commit: str
    """The commit of the base that the result will contain."""
    tip: str
    """The commit of the branch that the result will contain."""
    ours: str
    """What HEAD stood on at first: the base, or an earlier resolution."""
    theirs: str
    """What is merged into it: the branch, or an earlier resolution."""
    files: tuple[str, ...]
    """What was left in conflict."""
    was: dict[str, Any]
    """What the entry was before: its state, kind, reason, tier and files."""
    judged: str | None
    """The person's last commit that did not land."""
    accepted: str | None
    """The person's commit whose lost lines a person has accepted."""
    opened_by: str
    opened_at: str

    @property
    def is_first(self) -> bool:
        """True if the branch itself is merged into the base itself."""
        return (self.ours, self.theirs) == (self.base_commit, self.tip)


def name_of(merge_id: str) -> str:
    """The name of the worktree."""
    return f"{layout.RESOLUTION}{merge_id[-_SHORT:].lower()}"


def place_of(root: str, merge_id: str) -> str:
    """The worktree in which a person resolves the conflict of an entry."""
    return layout.path(os.path.realpath(root), layout.WORKTREES, name_of(merge_id))


def shown_place(merge_id: str) -> str:
    """The same for people, relative to the project: the project may be moved."""
    return os.path.relpath(place_of(os.sep, merge_id), os.sep)


@dataclass(frozen=True, slots=True)
class SideCommit(Record):
    """A commit of one side that touched a conflicted file."""

    commit: str
    subject: str
    branch: str | None = None
    """The branch that landed with it, if Rookery landed it."""
    task: str | None = None
    """The title of that branch's task."""
    agent: str | None = None
    """The agent of that branch."""


@dataclass(frozen=True, slots=True)
class SideView(Record):
    """What one side did to a file."""

    did: str
    """changed, added, deleted, renamed or nothing."""
    added: int | None
    """Lines; None for a binary file."""
    deleted: int | None
    commits: tuple[SideCommit, ...]
    more: int = 0
    """How many further commits touched it."""
    old_path: str | None = None
    """Its name before, if a side renamed it."""
    new_path: str | None = None
    """Its name on this side, if a side renamed it, and it is there."""


@dataclass(frozen=True, slots=True)
class Tried(Record):
    """What a tier made of a file."""

    tier: str
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class ConflictedPath(Record):
    """A file in conflict, with what both sides did to it."""

    path: str
    kind: str
    """content, binary, mode, symlink, submodule, or git's own word, such as modify/delete or rename/rename."""
    base: SideView
    branch: SideView
    tried: tuple[Tried, ...]
    how: str
    """How to settle this kind."""


@dataclass(frozen=True, slots=True)
class LostLine(Record):
    """A line (or, if empty, a whole file) that one side put in or took out, and that the result does not show."""

    path: str
    side: str
    kind: str
    line: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Resolving(Record):
    """A conflict that is in a person's hands, or what became of it."""

    PRINTS = "entry"
    entry: Entry
    status: str
    """`open`, `landed`, `not landed` (`--done` was said, and something stopped it) or `given up`."""
    path: str
    """The worktree."""
    files: tuple[ConflictedPath, ...] = ()
    settled: tuple[str, ...] = ()
    """Files that rules have settled already."""
    purpose: str | None = None
    """The title of the branch's task."""
    is_new: bool = False
    """True if this call has made the worktree."""
    notes: tuple[str, ...] = ()
    lost: tuple[LostLine, ...] = ()
    """Lines that the landed result leaves out, as a person has accepted."""
    rescue: str | None = None
    """The whole name of the ref that keeps work which was not handed back."""
    landing: Outcome | None = None
    """What `--done` did, with the gates that failed and the push that followed."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.entry.id

    @property
    def exit_status(self) -> int:
        """1 if it was handed back and did not land."""
        return 1 if self.status == NOT_LANDED else 0
