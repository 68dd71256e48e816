"""Types of the loop: what a flow decides to do, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.inbox.model import MOST_FAILURES
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import Identity

FIRST_WAIT, LONGEST_WAIT = 10.0, 300.0


@dataclass(frozen=True, slots=True)
class Action(Record):
    """Something to do. Doing it twice, or when it is no longer needed, changes nothing more."""

    flow: str
    name: str
    subject: str
    """The id of a session, the name of a base."""
    why: str
    label: str = ""
    """The subject's name for people."""
    seen: str = ""
    """The facts that it was decided from: decided again from the same, it has had no effect."""

    @property
    def key(self) -> str:
        """Identifies it among all actions."""
        return f"{self.name} {self.subject}"

    @property
    def title(self) -> str:
        """The action as people read it."""
        return f"{self.name} {self.label or self.subject}"


@dataclass(frozen=True, slots=True)
class Timer(Record):
    """A time at which to check again though nothing has happened."""

    at: float
    """In seconds since the epoch."""
    why: str
    """What happens then, as far as is known now."""


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """What a flow decides: what to do now, and when to check again."""

    actions: tuple[Action, ...] = ()
    timers: tuple[Timer, ...] = ()
    processes: tuple[Identity, ...] = ()
    """The loop checks again when one of them ends."""
    running: int = 0
    """How many runners are at work: while there are any, the loop must go on."""


class NeedsPerson(RookError):
    """Trying an action again cannot help: a person has to act."""


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
    """One subject that the loop takes care of: a module."""

    NAME: str
    ACTIONS: Mapping[str, Callable[[Context, str], None]]

    def read(self, ctx: Context) -> Any:
        """The facts, from one read transaction and from the system's view of processes."""

    def decide(self, facts: Any, now: float, /) -> Plan:
        """What to do about them. Pure."""


def visible_process(holder: HolderId | None) -> Identity | None:
    """The process of a holder, if it can be seen from here."""
    return None if holder is None or holders.is_elsewhere(holder) else holder.identity


def wait_after(failures: int) -> float:
    """How many seconds to wait before the next try."""
    return float(min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT))
