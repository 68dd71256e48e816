"""Sending, and delivery to turns. Other features call this; what a caller does with its own mail is in `ops`.

A message that a turn has seen counts as read only when that turn ends well: `deliver` shows it, `store.settle_turn`
marks it as read, or makes it new again after a crash. The turn's row must exist, running, before its mail is delivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rookery.base.ids import MESSAGE, new_id
from rookery.config.project import root_of
from rookery.db.database import Database
from rookery.mail import addressing, store
from rookery.mail.hand_in import HandIn
from rookery.mail.inject import choose
from rookery.mail.model import SYSTEM, Delivery, Draft, Message, NotYourMail, Sent, TurnOver
from rookery.mail.validation import check_draft
from rookery.ops.caller import check_alive
from rookery.ops.model import Caller
from rookery.roles.catalog import role_groups
from rookery.sessions.store import running_turn


def send(db: Database, caller: Caller, draft: Draft, now: str, hand_in: HandIn | None = None) -> Sent:
    """Send a message as the caller to all recipients that it names, or to none; with what it hands in, if anything."""
    check_draft(draft)
    if hand_in is not None:
        draft = draft.replace(payload=hand_in.complete(draft.payload))
    roles = role_groups(root_of(db.path)) if any(name.strip().startswith("@") for name in draft.to) else {}
    with db.write():
        check_alive(db, caller)
        thread_id = None if draft.thread is None else find_thread(db, caller, draft.thread)
        if hand_in is not None:
            hand_in.keep(db, caller, now)
        return post(db, caller, draft, thread_id, None, now, roles)


def send_from_system(
    db: Database,
    to: str,
    subject: str,
    body: str = "",
    *,
    type: str = "status",
    priority: str = "normal",
    payload: dict[str, Any] | None = None,
    now: str,
) -> Sent:
    """Send what Rookery itself has to say, within the caller's transaction if there is one; never to a role's group."""
    draft = Draft((to,), subject, body, type, priority, payload)
    check_draft(draft, from_system=True)
    with db.write():
        return post(db, Caller(SYSTEM, None), draft, None, None, now)


def deliver(db: Database, agent: str, turn_id: str, now: str) -> list[Message]:
    """What is new for an agent and fits into a prompt; from now on its running turn has seen it."""
    if not store.new_ids(db, agent, limit=1):
        return []
    with db.write():
        chosen = choose(store.get(db, message_id) for message_id in store.new_ids(db, agent))
        store.mark(db, agent, [message.id for message in chosen], turn_id, now)
        return [message.replace(turn_id=turn_id) for message in chosen]


def find_message(db: Database, caller: Caller, text: str) -> Message:
    """A message that the caller may see."""
    message = store.get(db, store.resolve(db, text))
    if not (caller.is_human or caller.name in (message.sender, message.recipient)):
        raise NotYourMail(f"{message.id} is neither from nor to {caller.name}")
    return message


def find_thread(db: Database, caller: Caller, text: str) -> str:
    """A thread that the caller may see."""
    thread_id = store.resolve_thread(db, text)
    if not caller.is_human and not store.select(db, store.Query(viewer=caller.name, thread=thread_id, limit=1)):
        raise NotYourMail(f"{caller.name} has no part in the thread {thread_id}")
    return thread_id


def find_inbox(db: Database, caller: Caller, agent: str | None) -> str:
    """The owner of the inbox that is asked for: the caller or, for a person, any agent."""
    if agent is None or agent == caller.name:
        return caller.name
    if not caller.is_human:
        raise NotYourMail(f"{caller.name} cannot look into the inbox of {agent}")
    return agent if agent == SYSTEM else addressing.find_person(db, agent).name


def post(
    db: Database,
    caller: Caller,
    draft: Draft,
    thread_id: str | None,
    reply_to: str | None,
    now: str,
    roles: Mapping[str, str] = MappingProxyType({}),
) -> Sent:
    """Within the caller's transaction: add a message for every recipient of a draft that was checked."""
    recipients = addressing.resolve(db, caller, draft.to, roles)
    deliveries = tuple(Delivery(new_id(MESSAGE), recipient.name, recipient.audience) for recipient in recipients)
    first_id = deliveries[0].id
    words = {name: value for name, value in draft.as_dict().items() if name not in ("to", "thread")}
    for delivery in deliveries:
        message = Message(
            id=delivery.id,
            thread_id=thread_id or first_id,
            reply_to=reply_to,
            sender=caller.name,
            recipient=delivery.to,
            audience=delivery.audience,
            **words,
            session_id=caller.session_id,
            turn_id=None,
            created_at=now,
            read_at=None,
        )
        store.insert(db, message)
    not_alive = tuple(recipient.name for recipient in recipients if not recipient.is_alive)
    held = tuple(recipient.name for recipient in recipients if recipient.is_held)
    done = tuple(recipient.name for recipient in recipients if recipient.is_done)
    to = tuple(delivery.to for delivery in deliveries)
    return Sent(not_alive, first_id, thread_id or first_id, to, deliveries, held, done)


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
