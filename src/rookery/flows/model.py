"""Pure types of the loop: what a flow decides to do, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.processes.proctable import Identity

FIRST_WAIT, LONGEST_WAIT = 10.0, 300.0
MOST_FAILURES = 8
"""An action that has failed so often is left to a person."""


@dataclass(frozen=True, slots=True)
class Action(Record):
    """Something to do. Doing it twice, or when it is no longer needed, changes nothing more."""

    flow: str
    name: str
    subject: str
    """What it is done to: the id of a session, the name of a base."""
    why: str
    label: str = ""
    """How people know the subject."""
    seen: str = ""
    """The facts that it was decided from: decided again from the same, it has had no effect."""

    @property
    def key(self) -> str:
        """What tells it from other actions."""
        return f"{self.name} {self.subject}"


@dataclass(frozen=True, slots=True)
class Timer(Record):
    """A moment at which to look again though nothing has happened."""

    at: float
    """In seconds since the epoch."""
    why: str
    """What happens then, as far as is known now."""


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """What a flow decides: what to do now, and what to look again for."""

    actions: tuple[Action, ...] = ()
    timers: tuple[Timer, ...] = ()
    processes: tuple[Identity, ...] = ()
    """Whose end is a reason to look again."""
    running: int = 0
    """How many runners are at work: as long as there are any, the loop must go on."""


class NeedsPerson(RookError):
    """Trying an action again cannot help: it is left to a person at once."""


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """An action that failed, and when it is tried again."""

    key: str
    count: int
    next_at: float
    error: str
    at: str
    seen: str = ""
    """The facts that it was decided from."""

    @property
    def is_given_up(self) -> bool:
        """True if it is left to a person."""
        return self.count >= MOST_FAILURES


class Flow(Protocol):
    """One subject that the loop looks after: a module."""

    NAME: str
    ACTIONS: Mapping[str, Callable[[Context, str], None]]

    def read(self, ctx: Context) -> Any:
        """The facts, from one read transaction and from what the system says of processes."""

    def decide(self, facts: Any, now: float) -> Plan:
        """What to do about them. Pure."""


def wait_after(failures: int) -> float:
    """How many seconds to wait before the next try."""
    return float(min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT))
