"""What a caller does with its mail: check, read, list, wait and purge.

What an agent sees counts as seen by its running turn, and is settled with it; outside of a turn, and for a person, what
is shown is read. A person who looks into the inbox of an agent marks nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput
from rookery.base.page import Page, rows_for
from rookery.base.record import Record
from rookery.db.commits import Commits
from rookery.db.database import Database
from rookery.mail import store
from rookery.mail.inject import MOST_MESSAGES, choose, render
from rookery.mail.model import Message, NotYourMail, TurnOver
from rookery.mail.service import find_inbox, find_message, find_thread
from rookery.mail.validation import check_type
from rookery.ops.caller import check_alive
from rookery.ops.model import Caller
from rookery.sessions.store import running_turn

DEFAULT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Checked(Record):
    """What was new in an inbox."""

    agent: str
    messages: tuple[Message, ...]
    waiting: int
    """How many more there are."""
    text: str | None
    """The messages as a part of a prompt, if that was asked for."""


@dataclass(frozen=True, slots=True)
class Opened(Message):
    """A message with its thread, as far as the caller may see it."""

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


def check(
    db: Database,
    caller: Caller,
    now: str,
    *,
    agent: str | None = None,
    inject: bool = False,
    limit: int = MOST_MESSAGES,
) -> Checked:
    """The messages that are new in an inbox; those that are shown count as seen if it is the caller's own."""
    if limit < 1:
        raise InvalidInput("the limit is less than 1", hint="--limit 1 or more")
    with db.read():
        owner = find_inbox(db, caller, agent)
        if owner != caller.name:
            shown = _pick(db, store.unread_ids(db, owner), limit, inject)
            return _checked(owner, shown, store.count_unread(db, owner) - len(shown), inject)
        if not store.new_ids(db, owner, limit=1):
            return _checked(owner, [], 0, inject)
    with db.write():
        check_alive(db, caller)
        shown = _mark(db, caller, _pick(db, store.new_ids(db, owner), limit, inject), now)
        return _checked(owner, shown, store.count_new(db, owner), inject)


def read(db: Database, caller: Caller, texts: tuple[str, ...], now: str) -> list[Opened]:
    """Messages with their threads; those to the caller count as seen."""
    with db.write():
        check_alive(db, caller)
        messages = {message.id: message for message in (find_message(db, caller, text) for text in texts)}
        unread = [message for message in messages.values() if message.recipient == caller.name and not message.read_at]
        messages |= {message.id: message for message in _mark(db, caller, unread, now)}
        return [
            Opened(**message.as_dict(), messages=tuple(_visible_thread(db, caller, message)))
            for message in messages.values()
        ]


def list_mail(db: Database, caller: Caller, query: store.Query, agent: str | None = None) -> Page[Message]:
    """Messages, newest first: an agent's own or, for a person, those of all. The query may shorten its ids."""
    if query.limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    if query.type is not None:
        check_type(query.type)
    with db.read():
        owner = find_inbox(db, caller, agent)
        viewer = None if caller.is_human and agent is None else owner
        only_own = query.unread and viewer is not None and query.sender is None
        messages = store.select(
            db,
            query.replace(
                viewer=viewer,
                recipient=query.recipient or (owner if only_own else None),
                thread=None if query.thread is None else find_thread(db, caller, query.thread),
                limit=rows_for(query.limit),
                before=None if query.before is None else store.resolve(db, query.before),
            ),
        )
    shown = messages[: query.limit or None]
    return Page(shown, shown[-1].id if len(shown) < len(messages) else None)


def wait(db: Database, caller: Caller, query: store.Query, timeout: float, now: Callable[[], str]) -> Message | None:
    """The next new message for the caller, as soon as there is one; None when the time is up."""
    if query.type is not None:
        check_type(query.type)
    deadline = time.monotonic() + timeout
    seen = -1
    with Commits(db.path) as commits:
        while True:
            version = db.data_version
            if version != seen:
                seen = version
                message = _take_next(db, caller, query, now)
                if message is not None:
                    return message
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            commits.wait(left)


def purge(
    db: Database, caller: Caller, clock: float, *, older_than: float | None, agent: str | None, unread_too: bool
) -> int:
    """Delete mail that was read, or with `unread_too` all; returns how many messages. Only a person may."""
    if older_than is None and agent is None and not unread_too:
        raise InvalidInput("that would delete all mail that was read", hint="say --older-than 30d, --agent, or --all")
    with db.write():
        check_alive(db, caller)
        if not caller.is_human:
            raise NotYourMail("only a person deletes mail", hint="what you have read no longer shows up")
        owner = None if agent is None else find_inbox(db, caller, agent)
        before = None if older_than is None else stamp(clock - older_than)
        return store.purge(db, before=before, agent=owner, unread_too=unread_too, actor=caller.name, now=stamp(clock))


def _take_next(db: Database, caller: Caller, query: store.Query, now: Callable[[], str]) -> Message | None:
    def find_next() -> list[str]:
        check_alive(db, caller)
        thread = None if query.thread is None else find_thread(db, caller, query.thread)
        return store.new_ids(db, caller.name, limit=1, sender=query.sender, thread=thread, type=query.type)

    with db.read():
        if not find_next():
            return None  # most commits are about other things, and need no write lock
    with db.write():
        messages = [store.get(db, message_id) for message_id in find_next()]
        return next(iter(_mark(db, caller, messages, now())), None)


def _pick(db: Database, ids: list[str], limit: int, inject: bool) -> list[Message]:
    if not inject:
        return [store.get(db, message_id) for message_id in ids[:limit]]
    return choose((store.get(db, message_id) for message_id in ids), min(limit, MOST_MESSAGES))


def _checked(owner: str, shown: list[Message], waiting: int, inject: bool) -> Checked:
    return Checked(owner, tuple(shown), waiting, render(shown, waiting) if inject else None)


def _mark(db: Database, caller: Caller, messages: list[Message], now: str) -> list[Message]:
    """The caller's messages, which now count as seen by its turn or, outside of one, as read."""
    if not messages:
        return []
    turn_id = current_turn(db, caller)
    store.mark(db, caller.name, [message.id for message in messages], turn_id, now)
    return [message.replace(turn_id=turn_id, read_at=now if turn_id is None else None) for message in messages]


def _visible_thread(db: Database, caller: Caller, message: Message) -> list[Message]:
    thread = store.thread(db, message.thread_id)
    return [entry for entry in thread if caller.is_human or caller.name in (entry.sender, entry.recipient)]


def current_turn(db: Database, caller: Caller) -> str | None:
    """The turn that the caller runs in, None outside of one.

    The session's own turn counts, whatever the environment says: a program in a terminal cannot be given a new
    variable with every turn. But what a turn left running must not take mail away from the turn after it.
    """
    turn = None if caller.session_id is None else running_turn(db, caller.session_id)
    running = None if turn is None else turn.id
    if caller.turn is not None and caller.turn != running:
        raise TurnOver(f"the turn {caller.turn} of {caller.name} is not running")
    return running
