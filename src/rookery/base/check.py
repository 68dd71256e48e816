"""What `rook doctor` asks. A check is a function in the `checks.py` of its feature, and yields findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rookery.base.errors import RookError
from rookery.base.record import Record

Check = Callable[["Place"], Iterator["Finding"]]

OK = "ok"
WARNING = "warning"
ERROR = "error"


@dataclass(frozen=True, slots=True)
class Place(Record):
    """Where the doctor looks: the project, if there is one, and the folder that it was called in."""

    root: str | None
    cwd: str
    refused: RookError | None = None
    """Why the state of the project that is there must not be opened."""


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """One thing that was looked at, how it is, and how to repair it."""

    HIDDEN = ("repair",)
    category: str
    name: str
    status: str
    message: str
    hint: str = ""
    repair: Callable[[], str] | None = None
    """Repairs it and says what was done; None where a person has to."""
    fixed: str = ""
    """What was done to repair it; empty if nothing was."""
    output: str = ""
    """The last lines of what a program printed, where that says more."""
