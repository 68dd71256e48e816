"""Pure types and rules of what waits for a person: its kinds, its order, and the command that settles it.

Nothing here is stored but what a person has put away: everything else follows from the tables of other rooms.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rookery.base.errors import Refused
from rookery.base.ids import handle
from rookery.base.record import Record

QUESTION, DECISION, ESCALATION, ERROR = "question", "decision_gate", "escalation", "error"
"""Messages to the person; their kinds are their types."""
CRASH, FAILED, GATE, BASE, CONFLICT, LANDING, IDLE, STRAY, ACTION, REVIEW = (
    *("crash", "failed", "gate", "base", "conflict", "landing", "idle", "cancelled", "action", "review"),
)
"""An agent that crashed or failed; a task that an agent gave up as failed; a branch, or the base, that fails a gate; a
conflict; a landing that something else stops; an agent that waits and has asked no one; an action that the loop has
given up; work that was handed in."""
KINDS = (
    DECISION,
    QUESTION,
    ESCALATION,
    ACTION,
    BASE,
    CONFLICT,
    GATE,
    LANDING,
    CRASH,
    FAILED,
    ERROR,
    IDLE,
    STRAY,
    REVIEW,
)
"""Of two that are as urgent, what stands first here holds up more."""

OPEN, ACKNOWLEDGED, SNOOZED = "open", "acknowledged", "snoozed"

_ULID = re.compile(r"[a-z]+_[0-9A-Z]{26}")
_HASH_LENGTH = 6
_SHORTEST_PART = 4

URGENCIES = ("urgent", "high", "normal", "low")
MOST_FAILURES = 8
"""An action of the loop that has failed so often is left to a person."""


class NoSuchItem(Refused):
    """Nothing of that key waits for a person."""

    code = "no_such_item"
    default_hint = "`rook inbox --all` lists what waits, with its keys"


class AmbiguousKey(Refused):
    """The text fits more than one item."""

    code = "ambiguous_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Record):
    """One thing that waits for a person."""

    SHOWN: ClassVar[tuple[str, ...]] = ("handle",)
    key: str
    """Its kind, the id of the fact, and where that can happen again its number: something new has another key."""
    kind: str
    id: str
    """Of the message, session, merge, task, base or action that it is about."""
    who: str
    """The agent, or the person or program, that it comes from; empty if none."""
    about: str
    """The title of its task, or the branch."""
    why: str
    """Why it waits, in one line."""
    since: str
    urgency: str = "normal"
    commands: tuple[str, ...]
    """The first one settles it; others look at it, or settle it in another way."""
    task_id: str | None = None
    state: str = OPEN
    until: str | None = None
    """When a snoozed one shows up again."""

    @property
    def handle(self) -> str:
        """The key as people see and type it."""
        return handle_of(self)

    @property
    def command(self) -> str:
        """The command that settles it."""
        return self.commands[0]


@dataclass(frozen=True, slots=True)
class Mark(Record):
    """What a person has put away, for good or until a time."""

    key: str
    until: str | None
    actor: str
    at: str


def key_of(kind: str, id: str, number: object = "") -> str:
    """The key of a fact; `number` tells one time that it happened from the next."""
    return f"{kind}:{id}" + (f".{number}" if number != "" else "")


def handle_of(item: Item) -> str:
    """The end of the id, where the fact has one; else a short hash of the key."""
    has_id = _ULID.fullmatch(item.id) is not None
    return handle(item.id) if has_id else short_hash(item.key)


def short_hash(text: str) -> str:
    """A few characters that tell one text from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def order(item: Item) -> tuple[object, ...]:
    """Urgent first, then what holds up more, then what has waited longest."""
    return URGENCIES.index(item.urgency), KINDS.index(item.kind), item.since, item.key


def find(items: Iterable[Item], text: str) -> Item:
    """The one item that a key, a handle or the end of an id names; raises NoSuchItem or AmbiguousKey."""
    wanted = text.strip().lower()
    fitting = [item for item in items if wanted in (item.key.lower(), item.handle)]
    if not fitting and len(wanted) >= _SHORTEST_PART:
        fitting = [item for item in items if item.id.lower().endswith(wanted)]
    if not fitting:
        raise NoSuchItem(f"nothing waits under {text!r}")
    if len(fitting) > 1:
        keys = ", ".join(item.key for item in fitting)
        raise AmbiguousKey(f"{text!r} fits more than one: {keys}", hint="give the whole key of one of them")
    return fitting[0]
