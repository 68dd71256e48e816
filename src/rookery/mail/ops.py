"""What we offer of mail. Agents call these all the time.

What an agent sees counts as seen by its running turn, and is settled with it; outside of a turn, and for a person, what
is shown is read. A person who looks into the inbox of an agent marks nothing.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from rookery.base.clock import parse_duration, stamp
from rookery.base.errors import InvalidInput
from rookery.base.page import Page, rows_for
from rookery.base.text import is_placeholder
from rookery.db.commits import Commits
from rookery.db.database import Database
from rookery.mail import addressing, reader_store, readers, service, store
from rookery.mail.hand_in import examine
from rookery.mail.inject import MOST_MESSAGES, choose, render
from rookery.mail.model import (
    MAX_SUBJECT,
    PRIORITIES,
    SYSTEM,
    Checked,
    Draft,
    Message,
    NotYourMail,
    Opened,
    Purged,
    Sent,
)
from rookery.mail.service import current_turn, find_inbox, find_message, find_thread
from rookery.mail.store import Query
from rookery.mail.validation import check_draft, check_type, read_payload
from rookery.ops.caller import check_alive
from rookery.ops.context import Context
from rookery.ops.model import Caller
from rookery.ops.operation import ADDRESSES, AGENTS, LONG_TEXT, MESSAGES, NOTHING, PROCESS, Choices, Doc, Ref, op
from rookery.roles.messages import TYPES

DEFAULT_LIMIT = 50

BodyOption = Annotated[str | None, LONG_TEXT, Doc("The text.")]
TypeOption = Annotated[
    str | None,
    Choices(tuple(kind.name for kind in TYPES.values() if not kind.is_system)),
    Doc("What kind of message it is (status)."),
]
PriorityOption = Annotated[str | None, Choices(PRIORITIES), Doc("How urgent it is (normal).")]
PayloadOption = Annotated[str | None, LONG_TEXT, Doc("What a protocol message carries, as a JSON object.")]
AgentOption = Annotated[str | None, Ref(AGENTS), Doc("For people: show the mail of this agent, and mark nothing.")]
FromOption = Annotated[str | None, Doc("Only from this sender.")]
OfTypeOption = Annotated[str | None, Choices(tuple(TYPES)), Doc("Only this kind of message.")]
ThreadOption = Annotated[str | None, Ref(MESSAGES), Doc("Only this thread, named by any of its messages.")]


@op("mail send", needs="mail.write", owns=NOTHING, view="mail.sent")
def send(
    ctx: Context,
    recipient: Annotated[
        str | None, Ref(ADDRESSES), Doc("An agent, `human`, or a group: @all, @builders, @lead, @children, @NAME.")
    ] = None,
    *,
    to: Annotated[tuple[str, ...], Ref(ADDRESSES), Doc("The same as an option; can be given several times.")] = (),
    subject: Annotated[str, Doc("What it is about, in a few words.")],
    body: BodyOption = None,
    type: TypeOption = None,
    priority: PriorityOption = None,
    thread: Annotated[str | None, Ref(MESSAGES), Doc("Continue a thread, named by any of its messages.")] = None,
    payload: PayloadOption = None,
) -> Sent:
    """Send a message to an agent, to people, or to a group.

    A group gets one message for each of its members, all in one thread. Groups are @all (every living agent but the
    sender), @builders, @leads, @scouts, @reviewers, @mergers, @monitors, @coordinators, @children and @siblings of the
    sender, @lead (who is above the sender), `@lead of NAME`, and those that `rook group create` makes.
    """
    names = to if recipient is None else (recipient, *to)
    kind, urgency = type or "status", priority or "normal"
    draft = Draft(names, subject, body or "", kind, urgency, read_payload(payload), thread)
    return service.send(ctx.db, ctx.caller, draft, ctx.now(), examine(ctx, draft.type, draft.payload))


@op("mail check", needs="mail.write", owns=NOTHING, view="mail.checked")
def check(
    ctx: Context,
    *,
    agent: AgentOption = None,
    inject: Annotated[
        bool, Doc("As a part of a prompt: fenced, labelled and bounded; nothing if there is no mail.")
    ] = False,
    limit: Annotated[int, Doc("How many at most (20).")] = 20,
) -> Checked:
    """Show the mail that is new, urgent first, then newest first.

    Mail that is shown to a person counts as read. A person's own Claude Code session sees each message once, and does
    not mark it as read for the person. Mail that an agent sees in a turn counts as read when that turn has ended well;
    otherwise it is shown again.
    """
    if limit < 1:
        raise InvalidInput("the limit is less than 1", hint="--limit 1 or more")
    db, caller = ctx.db, ctx.caller
    with db.read():
        owner = find_inbox(db, caller, agent)
        if owner != caller.name:
            shown = _pick(db, store.unread_ids(db, owner), limit, inject)
            return _checked(owner, shown, store.count_unread(db, owner) - len(shown), inject)
        if not _new_ids(ctx, limit=1) and _is_known(ctx):
            return _checked(owner, [], 0, inject)
    with db.write():
        check_alive(db, caller)
        _greet(ctx)
        shown = _mark(ctx, _pick(db, _new_ids(ctx), limit, inject))
        reader = readers.reader_of(ctx)
        waiting = store.count_new(db, owner) if reader is None else reader_store.count_new(db, reader)
        return _checked(owner, shown, waiting, inject)


def _new_ids(ctx: Context, **wanted: Any) -> list[str]:
    """What is new for the caller: for a person's own agent session, what that session was not shown."""
    reader = readers.reader_of(ctx)
    return (
        store.new_ids(ctx.db, ctx.caller.name, **wanted)
        if reader is None
        else reader_store.new_ids(ctx.db, reader, **wanted)
    )


def _is_known(ctx: Context) -> bool:
    reader = readers.reader_of(ctx)
    return reader is None or readers.is_known(ctx, reader)


def _greet(ctx: Context) -> None:
    """Within a transaction: from its first call on, what comes is new for a person's own agent session."""
    reader = readers.reader_of(ctx)
    if reader is not None:
        readers.greet(ctx, reader)


def _pick(db: Database, ids: list[str], limit: int, inject: bool) -> list[Message]:
    if not inject:
        return [store.get(db, message_id) for message_id in ids[:limit]]
    return choose((store.get(db, message_id) for message_id in ids), min(limit, MOST_MESSAGES))


def _checked(owner: str, shown: list[Message], waiting: int, inject: bool) -> Checked:
    return Checked(owner, tuple(shown), waiting, render(shown, waiting) if inject else None)


def _mark(ctx: Context, messages: list[Message]) -> list[Message]:
    """The caller's messages, which now count as seen by its turn or, outside of one, as read.

    What a person's own agent session is shown stays unread for the person.
    """
    if not messages:
        return []
    db, caller, now, reader = ctx.db, ctx.caller, ctx.now(), readers.reader_of(ctx)
    ids = [message.id for message in messages]
    if reader is not None:
        reader_store.mark(db, reader, ids)
        return messages
    turn_id = current_turn(db, caller)
    store.mark(db, caller.name, ids, turn_id, now)
    return [message.replace(turn_id=turn_id, read_at=now if turn_id is None else None) for message in messages]


@op("mail reply", needs="mail.write", owns=NOTHING, view="mail.sent")
def reply(
    ctx: Context,
    message: Annotated[str, Ref(MESSAGES), Doc("The message's id, or its beginning or end.")],
    *,
    body: Annotated[str, LONG_TEXT, Doc("The text.")],
    type: TypeOption = None,
    priority: Annotated[str | None, Choices(PRIORITIES), Doc("How urgent it is (as urgent as the message).")] = None,
    payload: PayloadOption = None,
) -> Sent:
    """Answer a message, in its thread. A person who answers has read it."""
    carried = read_payload(payload)
    if not body.strip():
        raise InvalidInput("the reply is empty", hint="say something with --body")
    if is_placeholder(body):
        raise InvalidInput("the reply is only …, which stands for your answer", hint="write that with --body")
    db, caller, now = ctx.db, ctx.caller, ctx.now()
    hand_in = examine(ctx, type or "status", carried)
    with db.write():
        check_alive(db, caller)
        original = find_message(db, caller, message)
        to = original.recipient if original.sender == caller.name else original.sender
        subject, urgency = _as_reply(original.subject), priority or original.priority
        draft = Draft((to,), subject, body, type or "status", urgency, carried)
        check_draft(draft)
        hand_in.keep(db, caller, now)
        if caller.is_human and original.recipient == caller.name and original.read_at is None:
            _greet(ctx)
            _mark(ctx, [original])
        whole = draft.replace(payload=hand_in.complete(draft.payload))
        return service.post(db, caller, whole, original.thread_id, original.id, now)


def _as_reply(subject: str) -> str:
    """`Re: …`, once, and no longer than a subject may be."""
    if subject.lower().startswith("re:"):
        return subject
    return f"Re: {subject}".encode()[:MAX_SUBJECT].decode(errors="ignore")


@op("mail read", needs="mail.write", owns=NOTHING, view="mail.opened")
def read(
    ctx: Context, message: Annotated[tuple[str, ...], Ref(MESSAGES), Doc("Ids, or their beginnings.")]
) -> list[Opened]:
    """Show messages at length, with their threads, and mark them as read."""
    db, caller = ctx.db, ctx.caller
    with db.write():
        check_alive(db, caller)
        _greet(ctx)
        messages = {known.id: known for known in (find_message(db, caller, text) for text in message)}
        is_reader = readers.reader_of(ctx) is not None  # of what the person has read, too, it keeps a mark
        unread = [
            known for known in messages.values() if known.recipient == caller.name and (is_reader or not known.read_at)
        ]
        messages |= {marked.id: marked for marked in _mark(ctx, unread)}
        return [
            Opened(**known.as_dict(), messages=tuple(_visible_thread(db, caller, known))) for known in messages.values()
        ]


def _visible_thread(db: Database, caller: Caller, message: Message) -> list[Message]:
    thread = store.thread(db, message.thread_id)
    return [entry for entry in thread if caller.is_human or caller.name in (entry.sender, entry.recipient)]


@op("mail list", needs="mail.read", view="mail.table")
def list_mail(
    ctx: Context,
    *,
    from_: FromOption = None,
    to: Annotated[str | None, Ref(ADDRESSES), Doc("Only to this recipient.")] = None,
    type: OfTypeOption = None,
    unread: Annotated[bool, Doc("Only what its recipient has not read.")] = False,
    unanswered: Annotated[
        bool, Doc("Only questions, decisions, errors and escalations that wait for an answer, read or not.")
    ] = False,
    thread: ThreadOption = None,
    agent: AgentOption = None,
    limit: Annotated[int, Doc(f"How many at most ({DEFAULT_LIMIT}; 0 for all).")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Doc("The last message of the page before: go on after it.")] = None,
) -> Page[Message]:
    """List mail, newest first, without marking it as read. An agent sees its own, people see all."""
    if limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    if type is not None:
        check_type(type)
    db, caller = ctx.db, ctx.caller
    with db.read():
        owner = find_inbox(db, caller, agent)
        viewer = None if caller.is_human and agent is None else owner
        only_own = (unread or unanswered) and viewer is not None and from_ is None
        query = Query(
            sender=from_,
            recipient=to or (owner if only_own else None),
            type=type,
            thread=None if thread is None else find_thread(db, caller, thread),
            unread=unread,
            unanswered=unanswered,
            limit=rows_for(limit),
            before=None if cursor is None else store.resolve(db, cursor),
            viewer=viewer,
        )
        messages = store.select(db, query)
    shown = messages[: limit or None]
    return Page(shown, shown[-1].id if len(shown) < len(messages) else None)


@op("mail wait", needs="mail.write", long=True, waits=True, touches=PROCESS, owns=NOTHING, view="mail.waited")
def wait(
    ctx: Context,
    *,
    timeout: Annotated[str, Doc("How long at most, such as 30s or 5m (5m).")] = "5m",
    from_: FromOption = None,
    thread: ThreadOption = None,
    type: OfTypeOption = None,
) -> Message | None:
    """Wait until there is new mail, and show the first of it. When the time is up, the exit status is 1.

    A headless agent need not wait: it ends its turn, and mail begins the next one.
    """
    deadline = time.monotonic() + parse_duration(timeout)
    if type is not None:
        check_type(type)
    if from_ is not None and from_ != SYSTEM:
        addressing.find_person(ctx.db, from_)
    seen = -1
    with Commits(ctx.db.path) as commits:
        while True:
            version = ctx.db.data_version
            if version != seen:
                seen = version
                message = _take_next(ctx, from_, thread, type)
                if message is not None:
                    return message
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            commits.wait(left)


def _take_next(ctx: Context, sender: str | None, thread: str | None, type: str | None) -> Message | None:
    db, caller = ctx.db, ctx.caller

    def find_next() -> list[str]:
        check_alive(db, caller)
        thread_id = None if thread is None else find_thread(db, caller, thread)
        return _new_ids(ctx, limit=1, sender=sender, thread_id=thread_id, type=type)

    with db.read():
        if not find_next():
            return None  # most commits are about other things, and need no write lock
    with db.write():
        _greet(ctx)
        messages = [store.get(db, message_id) for message_id in find_next()]
        return next(iter(_mark(ctx, messages)), None)


@op("mail purge", needs="mailbox.write", owns=NOTHING, view="mail.purged")
def purge(
    ctx: Context,
    *,
    older_than: Annotated[str | None, Doc("Only what is older, such as 30d.")] = None,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only what this agent sent or got.")] = None,
    all: Annotated[bool, Doc("Also what was never read, and questions that no one has answered.")] = False,
) -> Purged:
    """Delete mail that was read and waits for no answer. For people only; it cannot be undone.

    With a question that stays, its answers stay too.
    """
    clock = ctx.clock()
    before = None if older_than is None else stamp(clock - parse_duration(older_than))
    if before is None and agent is None and not all:
        raise InvalidInput("that would delete all mail that was read", hint="say --older-than 30d, --agent, or --all")
    db, caller = ctx.db, ctx.caller
    with db.write():
        check_alive(db, caller)
        if not caller.is_human:
            raise NotYourMail("only a person deletes mail", hint="what you have read no longer shows up")
        owner = None if agent is None else find_inbox(db, caller, agent)
        deleted = store.purge(db, before=before, agent=owner, unread_too=all, actor=caller.name, now=stamp(clock))
    return Purged(deleted)
