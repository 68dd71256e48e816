"""Messages between agents and people; which types there are is in `roles.messages`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rookery.base.errors import Refused
from rookery.base.record import Record

HUMAN = "human"
SYSTEM = "rook"
"""The sender of what Rookery itself has to say; no other caller can be it."""

PRIORITIES = ("low", "normal", "high", "urgent")
QUIET_PRIORITY = "low"
"""What Rookery itself sends so wakes no agent: it is delivered at the next turn, whatever begins that."""
MAX_SUBJECT = 500
MAX_BODY = 100_000


class UnknownRecipient(Refused):
    """No agent of that name has ever been here."""

    code = "unknown_recipient"


class InvalidPayload(Refused):
    """A protocol message lacks something, or holds something that it may not."""

    code = "invalid_payload"


class NotYourMail(Refused):
    """An agent asks for mail that it neither sent nor got, or for what only a person may do."""

    code = "not_your_mail"
    default_hint = "an agent sees what it sent and what was sent to it"


class EmptyGroup(Refused):
    """The group exists, and has no member now."""

    code = "empty_group"


class TurnOver(Refused):
    """The caller was started in a turn that is no longer running."""

    code = "turn_over"
    default_hint = "a later turn sees the mail; what a turn leaves running must not take it away"


@dataclass(frozen=True, slots=True)
class Message(Record):
    """One message to one recipient."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("session_id",)
    JSON_NAMES = {"sender": "from", "recipient": "to", "turn_id": "delivered_turn"}
    id: str
    thread_id: str
    reply_to: str | None
    sender: str
    recipient: str
    audience: str | None
    """The group that it was sent to, if it was one."""
    type: str
    priority: str
    subject: str
    body: str
    payload: dict[str, Any] | None
    session_id: str | None
    """The sender's session in which it was sent."""
    turn_id: str | None
    """The turn that saw it."""
    created_at: str
    read_at: str | None
    """None until it was shown to a person, or in a turn that ended well."""


@dataclass(frozen=True, slots=True)
class Draft(Record):
    """A message before it is sent."""

    to: tuple[str, ...]
    subject: str
    body: str = ""
    type: str = "status"
    priority: str = "normal"
    payload: dict[str, Any] | None = None
    thread: str | None = None
    """A message of the thread that it goes on with; without one it begins its own."""


@dataclass(frozen=True, slots=True)
class Delivery(Record):
    """One message of many: which, to whom, and the group that it was sent to."""

    id: str
    to: str
    audience: str | None


@dataclass(frozen=True, slots=True)
class Sent(Record):
    """What was sent: one message a recipient, in one thread."""

    PRINTS = "messages"
    not_alive: tuple[str, ...]
    """Recipients that have ended: the mail is kept, and read if an agent of that name is slung again."""
    id: str
    """The first message's id."""
    thread_id: str
    to: tuple[str, ...]
    messages: tuple[Delivery, ...]
    held: tuple[str, ...] = ()
    """Recipients that are paused or taken over: they read it when they go on."""
    done: tuple[str, ...] = ()
    """Recipients that have ended, and whose task is completed: only a new task starts them again."""


@dataclass(frozen=True, slots=True)
class Checked(Record):
    """What was new in an inbox."""

    PRINTS = "messages"
    agent: str
    messages: tuple[Message, ...]
    waiting: int
    """How many more there are."""
    text: str | None
    """The messages as a part of a prompt, if that was asked for."""


@dataclass(frozen=True, slots=True)
class Opened(Message):
    """A message with its thread, as far as the caller may see it."""

    PRINTS = "messages"
    HIDDEN = (*Message.HIDDEN, "messages")
    SHOWN = ("thread",)
    messages: tuple[Message, ...]

    @property
    def thread(self) -> tuple[str, ...]:
        """The ids of the thread's messages."""
        return tuple(message.id for message in self.messages)


@dataclass(frozen=True, slots=True)
class Purged(Record):
    """How many messages were deleted."""

    deleted: int
