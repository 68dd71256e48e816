"""What we offer of mail. Agents call these all the time."""

from __future__ import annotations

from rookery.base.clock import parse_duration
from rookery.mail import inbox, service
from rookery.mail.inbox import DEFAULT_LIMIT, Checked, Filter, Opened
from rookery.mail.model import PRIORITIES, Draft, Message, Sent
from rookery.mail.validation import read_payload
from rookery.ops.context import Context
from rookery.ops.operation import INTEGER, arg, flag, op, option, options
from rookery.roles.messages import TYPES

BODY = option("body", "What there is to say.", long_text=True)
TYPE = option(
    "type",
    "What kind of message it is (status).",
    choices=tuple(each.name for each in TYPES.values() if not each.is_system),
)
PRIORITY = option("priority", "How urgent it is (normal).", choices=PRIORITIES)
PAYLOAD = option("payload", "What a protocol message carries, as a JSON object.", long_text=True)
AGENT = option("agent", "For people: look into this one's mail, and leave no mark.")
FROM = option("from", "Only from this sender.")
OF_TYPE = option("type", "Only this kind of message.", choices=tuple(TYPES))
THREAD = option("thread", "Only this thread; any message of it names it.")


@op(
    "mail send",
    arg("recipient", "An agent, `human`, or a group: @all, @builders, @lead, @children, @NAME.", required=False),
    options("to", "The same as an option; can be given several times."),
    option("subject", "What it is about, in a few words.", required=True),
    BODY,
    TYPE,
    PRIORITY,
    option("thread", "Go on with a thread; any message of it names it."),
    PAYLOAD,
    needs="mail.write",
    owns={},
    view="mail.sent",
)
def send(
    ctx: Context,
    recipient: str | None,
    to: tuple[str, ...],
    subject: str,
    body: str | None,
    type: str | None,
    priority: str | None,
    thread: str | None,
    payload: str | None,
) -> Sent:
    """Send a message to an agent, to people, or to a group.

    A group is one message for each of its members, all in one thread. Groups are @all (every living agent but the
    sender), @builders, @leads, @scouts, @reviewers, @mergers, @monitors, @coordinators, @children and @siblings of the
    sender, @lead (who is above the sender), `@lead of NAME`, and those that `rook group create` makes.
    """
    draft = Draft(
        to=((recipient,) if recipient is not None else ()) + tuple(to),
        subject=subject,
        body=body or "",
        type=type or "status",
        priority=priority or "normal",
        payload=read_payload(payload),
        thread=thread,
    )
    return service.send(ctx.db, ctx.caller, draft, ctx.now())


@op(
    "mail check",
    AGENT,
    flag("inject", "As a part of a prompt: fenced, labelled and bounded; nothing if there is no mail."),
    option("limit", "How many at most (20).", kind=INTEGER, default=20),
    needs="mail.write",
    owns={},
    view="mail.checked",
)
def check(ctx: Context, agent: str | None, inject: bool, limit: int) -> Checked:
    """Show the mail that is new, urgent first, then newest first.

    What is shown to a person is read. What an agent sees in a turn is read when that turn has ended well, and shown
    again if it has not.
    """
    return inbox.check(ctx.db, ctx.caller, ctx.now(), agent=agent, inject=inject, limit=limit)


@op(
    "mail reply",
    arg("message", "The message's id, or the beginning of it."),
    option("body", "What there is to say.", long_text=True, required=True),
    TYPE,
    option("priority", "How urgent it is (as urgent as the message).", choices=PRIORITIES),
    PAYLOAD,
    needs="mail.write",
    owns={},
    view="mail.sent",
)
def reply(ctx: Context, message: str, body: str, type: str | None, priority: str | None, payload: str | None) -> Sent:
    """Answer a message, in its thread."""
    return service.reply(
        ctx.db,
        ctx.caller,
        message,
        body,
        ctx.now(),
        type=type or "status",
        priority=priority,
        payload=read_payload(payload),
    )


@op(
    "mail read", arg("message", "Ids, or their beginnings.", many=True), needs="mail.write", owns={}, view="mail.opened"
)
def read(ctx: Context, message: tuple[str, ...]) -> list[Opened]:
    """Show messages at length, with their threads, and mark them as read."""
    return inbox.read(ctx.db, ctx.caller, tuple(message), ctx.now())


@op(
    "mail list",
    FROM,
    option("to", "Only to this recipient."),
    OF_TYPE,
    flag("unread", "Only what its recipient has not read."),
    THREAD,
    AGENT,
    option("limit", f"How many at most ({DEFAULT_LIMIT}; 0 for all).", kind=INTEGER, default=DEFAULT_LIMIT),
    option("cursor", "The last message of the page before: go on after it."),
    needs="mail.read",
    view="mail.table",
)
def list_mail(
    ctx: Context,
    to: str | None,
    type: str | None,
    unread: bool,
    thread: str | None,
    agent: str | None,
    limit: int,
    cursor: str | None,
    **more: str | None,
) -> list[Message]:
    """List mail, newest first, without marking anything: an agent's own or, for people, everybody's."""
    wanted = Filter(more["from"], to, type, thread, unread, limit, cursor)
    return inbox.list_mail(ctx.db, ctx.caller, wanted, agent)


@op(
    "mail wait",
    option("timeout", "How long at most, such as 30s or 5m (5m).", default="5m"),
    FROM,
    THREAD,
    OF_TYPE,
    needs="mail.write",
    owns={},
    view="mail.waited",
)
def wait(ctx: Context, timeout: str, thread: str | None, type: str | None, **more: str | None) -> Message | None:
    """Wait until there is new mail, and show the first of it; nothing when the time is up.

    A headless agent need not wait: it ends its turn, and mail begins the next one.
    """
    wanted = Filter(sender=more["from"], thread=thread, type=type)
    return inbox.wait(ctx.db, ctx.caller, wanted, parse_duration(timeout), ctx.now)


@op(
    "mail purge",
    option("older_than", "Only what is older, such as 30d."),
    option("agent", "Only what this one sent or got."),
    flag("all", "Also what was never read."),
    needs="mailbox.write",
    owns={},
    view="mail.purged",
)
def purge(ctx: Context, older_than: str | None, agent: str | None, all: bool) -> dict[str, int]:
    """Delete mail that was read. Only a person may, and it does not come back."""
    seconds = None if older_than is None else parse_duration(older_than)
    gone = inbox.purge(ctx.db, ctx.caller, ctx.clock(), older_than=seconds, agent=agent, unread_too=all)
    return {"deleted": gone}
