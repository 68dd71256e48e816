"""What goes into a resolution and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record

OURS = "ours"
THEIRS = "theirs"
BOTH = "both"

ADDED_MISSING = "added_line_missing"
DELETED_BACK = "deleted_line_back"
KEPT_MISSING = "kept_line_missing"


@dataclass(frozen=True, slots=True)
class Sides(Record):
    """One conflicted path; None where it is absent on that side.

    The histories are the contents that the path had on each side since the base, newest first, without the one that
    is merged; as many as the caller reads. Without them the rule that looks for superseded text has no answer.
    """

    path: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    base_mode: str | None = None
    ours_mode: str | None = None
    theirs_mode: str | None = None
    ours_history: tuple[bytes, ...] = ()
    theirs_history: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss(Record):
    """A line that one side has put in or taken out, which the result does not show."""

    side: str
    kind: str
    line: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Hunk(Record):
    """What was done to one region that both sides had changed, for people who ask why."""

    rule: str
    why: str
    """One sentence: why nothing is lost here."""
    start: int
    """The first line of the result that it made, counted from 1."""
    end: int
    """The line after the last; the same as `start` if it made none."""
    ours: str
    base: str
    theirs: str
    result: str
    covers: tuple[Loss, ...] = ()
    """What the rule knowingly left out, or back in: the loss check forgives that alone."""


@dataclass(frozen=True, slots=True)
class Resolved(Record):
    """The whole content of the path, every region of it settled."""

    content: bytes
    mode: str | None
    hunks: tuple[Hunk, ...]

    @property
    def covers(self) -> tuple[Loss, ...]:
        """What the rules that were used have to answer for."""
        return tuple(cover for hunk in self.hunks for cover in hunk.covers)


@dataclass(frozen=True, slots=True)
class Declined(Record):
    """Nothing was resolved: the path is for another tier."""

    reason: str
    kind: str
    """content, modify/delete, add/add, binary, encoding, symlink, submodule, mode, lockfile, too_big, criss_cross."""
