"""What we offer of mail. Agents call these all the time."""

from __future__ import annotations

from typing import Annotated

from rookery.base.clock import parse_duration
from rookery.base.page import Page
from rookery.mail import inbox, service
from rookery.mail.inbox import DEFAULT_LIMIT, Checked, Opened, Purged
from rookery.mail.model import PRIORITIES, Draft, Message, Sent
from rookery.mail.store import Query
from rookery.mail.validation import read_payload
from rookery.ops.context import Context
from rookery.ops.operation import ADDRESSES, AGENTS, LONG_TEXT, MESSAGES, NOTHING, PROCESS, Choices, Doc, Ref, op
from rookery.roles.messages import TYPES

BodyOption = Annotated[str | None, LONG_TEXT, Doc("What there is to say.")]
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
ThreadOption = Annotated[str | None, Ref(MESSAGES), Doc("Only this thread; any message of it names it.")]


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
    thread: Annotated[str | None, Ref(MESSAGES), Doc("Go on with a thread; any message of it names it.")] = None,
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
    return service.send(ctx.db, ctx.caller, draft, ctx.now())


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

    What is shown to a person is read. What an agent sees in a turn is read when that turn has ended well, and shown
    again if it has not.
    """
    return inbox.check(ctx.db, ctx.caller, ctx.now(), agent=agent, inject=inject, limit=limit)


@op("mail reply", needs="mail.write", owns=NOTHING, view="mail.sent")
def reply(
    ctx: Context,
    message: Annotated[str, Ref(MESSAGES), Doc("The message's id, or the beginning of it.")],
    *,
    body: Annotated[str, LONG_TEXT, Doc("What there is to say.")],
    type: TypeOption = None,
    priority: Annotated[str | None, Choices(PRIORITIES), Doc("How urgent it is (as urgent as the message).")] = None,
    payload: PayloadOption = None,
) -> Sent:
    """Answer a message, in its thread."""
    kind, carried = type or "status", read_payload(payload)
    return service.reply(ctx.db, ctx.caller, message, body, ctx.now(), type=kind, priority=priority, payload=carried)


@op("mail read", needs="mail.write", owns=NOTHING, view="mail.opened")
def read(
    ctx: Context, message: Annotated[tuple[str, ...], Ref(MESSAGES), Doc("Ids, or their beginnings.")]
) -> list[Opened]:
    """Show messages at length, with their threads, and mark them as read."""
    return inbox.read(ctx.db, ctx.caller, message, ctx.now())


@op("mail list", needs="mail.read", view="mail.table")
def list_mail(
    ctx: Context,
    *,
    from_: FromOption = None,
    to: Annotated[str | None, Ref(ADDRESSES), Doc("Only to this recipient.")] = None,
    type: OfTypeOption = None,
    unread: Annotated[bool, Doc("Only what its recipient has not read.")] = False,
    thread: ThreadOption = None,
    agent: AgentOption = None,
    limit: Annotated[int, Doc(f"How many at most ({DEFAULT_LIMIT}; 0 for all).")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Doc("The last message of the page before: go on after it.")] = None,
) -> Page[Message]:
    """List mail, newest first, without marking anything: an agent's own or, for people, that of all."""
    query = Query(from_, to, type, thread, unread, limit, before=cursor)
    return inbox.list_mail(ctx.db, ctx.caller, query, agent)


@op("mail wait", needs="mail.write", long=True, touches=PROCESS, owns=NOTHING, view="mail.waited")
def wait(
    ctx: Context,
    *,
    timeout: Annotated[str, Doc("How long at most, such as 30s or 5m (5m).")] = "5m",
    from_: FromOption = None,
    thread: ThreadOption = None,
    type: OfTypeOption = None,
) -> Message | None:
    """Wait until there is new mail, and show the first of it; nothing when the time is up.

    A headless agent need not wait: it ends its turn, and mail begins the next one.
    """
    query = Query(sender=from_, thread=thread, type=type)
    return inbox.wait(ctx.db, ctx.caller, query, parse_duration(timeout), ctx.now)


@op("mail purge", needs="mailbox.write", owns=NOTHING, view="mail.purged")
def purge(
    ctx: Context,
    *,
    older_than: Annotated[str | None, Doc("Only what is older, such as 30d.")] = None,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only what this one sent or got.")] = None,
    all: Annotated[bool, Doc("Also what was never read.")] = False,
) -> Purged:
    """Delete mail that was read. Only a person may, and it does not come back."""
    seconds = None if older_than is None else parse_duration(older_than)
    return Purged(inbox.purge(ctx.db, ctx.caller, ctx.clock(), older_than=seconds, agent=agent, unread_too=all))
