"""What a caller does with its mail: check, read, list, wait and purge.

An agent's look counts as its running turn's, and is settled with it; outside of a turn, and for a person, what is
shown is read. A person who looks into somebody else's inbox leaves no mark.
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
from rookery.mail.inject import LIMITS, choose, render
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
    """A message with the thread that it stands in, as far as the caller may see it."""

    HIDDEN = (*Message.HIDDEN, "messages")
    SHOWN = ("thread",)
    messages: tuple[Message, ...]

    @property
    def thread(self) -> tuple[str, ...]:
        """The ids of the thread's messages."""
        return tuple(each.id for each in self.messages)


@dataclass(frozen=True, slots=True)
class Purged(Record):
    """How many messages were deleted."""

    deleted: int


@dataclass(frozen=True, slots=True)
class Filter(Record):
    """Which messages to list or to wait for; conditions add up."""

    sender: str | None = None
    recipient: str | None = None
    type: str | None = None
    thread: str | None = None
    unread: bool = False
    limit: int = DEFAULT_LIMIT
    """0 for all."""
    cursor: str | None = None
    """The last message of the page before."""


def check(
    db: Database,
    caller: Caller,
    now: str,
    *,
    agent: str | None = None,
    inject: bool = False,
    limit: int = LIMITS.messages,
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
        turn_id = current_turn(db, caller)
        shown = _pick(db, store.new_ids(db, owner), limit, inject)
        store.mark(db, owner, [each.id for each in shown], turn_id, now)
        return _checked(owner, [_marked(each, turn_id, now) for each in shown], store.count_new(db, owner), inject)


def read(db: Database, caller: Caller, texts: tuple[str, ...], now: str) -> list[Opened]:
    """Messages with their threads; those to the caller count as seen."""
    with db.write():
        check_alive(db, caller)
        found = [find_message(db, caller, text) for text in dict.fromkeys(texts)]
        mine = {each.id: each for each in found if each.recipient == caller.name and each.read_at is None}
        if mine:
            turn_id = current_turn(db, caller)
            store.mark(db, caller.name, list(mine), turn_id, now)
            found = [_marked(each, turn_id, now) if each.id in mine else each for each in found]
        return [
            Opened(**each.as_dict(), messages=tuple(_visible_thread(db, caller.name, caller.is_human, each)))
            for each in found
        ]


def list_mail(db: Database, caller: Caller, wanted: Filter, agent: str | None = None) -> Page[Message]:
    """Messages, newest first: an agent's own or, for a person, everybody's."""
    if wanted.limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    if wanted.type is not None:
        check_type(wanted.type)
    with db.read():
        viewer = find_inbox(db, caller, agent)
        query = store.Query(
            viewer=None if caller.is_human and agent is None else viewer,
            sender=wanted.sender,
            recipient=wanted.recipient,
            type=wanted.type,
            unread=wanted.unread,
            thread=None if wanted.thread is None else find_thread(db, caller, wanted.thread),
            limit=rows_for(wanted.limit),
            before=None if wanted.cursor is None else store.resolve(db, wanted.cursor),
        )
        if query.unread and query.viewer is not None and query.sender is None:
            query = query.replace(recipient=query.recipient or viewer)
        messages = store.select(db, query)
    shown = messages[: wanted.limit or None]
    return Page(shown, shown[-1].id if len(shown) < len(messages) else None)


def wait(db: Database, caller: Caller, wanted: Filter, timeout: float, now: Callable[[], str]) -> Message | None:
    """The next new message for the caller, as soon as there is one; None when the time is up."""
    if wanted.type is not None:
        check_type(wanted.type)
    deadline = time.monotonic() + timeout
    seen = -1
    with Commits(db.path) as commits:
        while True:
            version = db.data_version
            if version != seen:
                seen = version
                found = _take_next(db, caller, wanted, now)
                if found is not None:
                    return found
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            commits.wait(left)


def purge(
    db: Database, caller: Caller, clock: float, *, older_than: float | None, agent: str | None, unread_too: bool
) -> int:
    """Delete mail that was read, or with `unread_too` any; how many messages. Only a person may."""
    if older_than is None and agent is None and not unread_too:
        raise InvalidInput("that would delete all mail that was read", hint="say --older-than 30d, --agent, or --all")
    with db.write():
        check_alive(db, caller)
        if not caller.is_human:
            raise NotYourMail("only a person deletes mail", hint="what you have read no longer shows up")
        owner = None if agent is None else find_inbox(db, caller, agent)
        before = None if older_than is None else stamp(clock - older_than)
        return store.purge(db, before=before, agent=owner, unread_too=unread_too, actor=caller.name, now=stamp(clock))


def _take_next(db: Database, caller: Caller, wanted: Filter, now: Callable[[], str]) -> Message | None:
    with db.read():
        check_alive(db, caller)
        thread = None if wanted.thread is None else find_thread(db, caller, wanted.thread)
        if not store.new_ids(db, caller.name, limit=1, sender=wanted.sender, thread=thread, type=wanted.type):
            return None
    with db.write():
        check_alive(db, caller)
        turn_id = current_turn(db, caller)
        ids = store.new_ids(db, caller.name, limit=1, sender=wanted.sender, thread=thread, type=wanted.type)
        if not ids:
            return None
        at = now()
        store.mark(db, caller.name, ids, turn_id, at)
        return store.get(db, ids[0])


def _pick(db: Database, ids: list[str], limit: int, inject: bool) -> list[Message]:
    if not inject:
        return [store.get(db, each) for each in ids[:limit]]
    limits = LIMITS.replace(messages=min(limit, LIMITS.messages))
    return choose((store.get(db, each) for each in ids), limits)


def _checked(owner: str, shown: list[Message], waiting: int, inject: bool) -> Checked:
    return Checked(owner, tuple(shown), waiting, render(shown, waiting) if inject else None)


def _marked(message: Message, turn_id: str | None, now: str) -> Message:
    return message.replace(turn_id=turn_id, read_at=now if turn_id is None else None)


def _visible_thread(db: Database, name: str, sees_all: bool, message: Message) -> list[Message]:
    thread = store.thread(db, message.thread_id)
    return [each for each in thread if sees_all or name in (each.sender, each.recipient)]


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
