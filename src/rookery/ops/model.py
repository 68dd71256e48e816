"""Who calls, and where a project lies: pure types of what is known before anything else is done."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.config.environ import HUMAN


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """A caller that is who it says it is."""

    name: str
    session_id: str | None
    """The session that it speaks from; None for a person, and for Rookery itself."""
    role: str = ""
    task_id: str | None = None
    parent: str = ""
    """Who an agent answers to."""
    worktree: str = ""
    turn: str | None = None
    """The turn that the calling process says it was started in; None where it says nothing."""

    @property
    def is_human(self) -> bool:
        """True for a person."""
        return self.name == HUMAN


PERSON = Caller(HUMAN, None)


@dataclass(frozen=True, slots=True)
class Location(Record):
    """A project's place."""

    id: str
    """Random, and another one in a copy; empty for a project of an earlier Rookery."""
    path: str
    """The root, without links in its path."""
    folder: str
    """Device and inode of `.rookery`."""
    changed: int
    """When the file `.rookery/location` was last changed, in nanoseconds; 0 if there is none."""
    host: str
    namespace: str
