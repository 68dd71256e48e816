"""Operations of the inbox. Only people have one: an agent asks by mail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rookery.base.record import Record
from rookery.db.commits import Commits
from rookery.inbox import opened, service
from rookery.inbox.model import OPEN, Item
from rookery.inbox.opened import Opened
from rookery.ops.context import Context
from rookery.ops.operation import FOLLOWS, INBOX, NOTHING, Doc, Ref, op
from rookery.sessions import store as sessions
from rookery.sessions.model import WAITING

_SHORTEST_SECONDS = 0.3
_LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Inbox(Record):
    """What waits for a person."""

    PRINTS = "items"
    SHOWN: ClassVar[tuple[str, ...]] = ("open",)
    items: tuple[Item, ...]
    """In the order in which to look at them: urgent first, then what holds up more, then what has waited longest."""
    put_away: int
    """How many are acknowledged or snoozed; with `--all` they are among the items."""
    working: tuple[str, ...]
    """The agents that are at work."""

    @property
    def open(self) -> int:
        """How many wait and are not put away."""
        return sum(item.state == OPEN for item in self.items)


KeyArg = Annotated[
    tuple[str, ...], Ref(INBOX), Doc("Keys, as `rook inbox` shows them; the end of an id names what it is about.")
]


@op("inbox", needs="inbox.read", redraws=True, view="inbox.listing")
def inbox(
    ctx: Context,
    *,
    all: Annotated[bool, Doc("Also what is acknowledged or snoozed.")] = False,
    watch: Annotated[bool, FOLLOWS, Doc("Show it again whenever it changes, until interrupted.")] = False,
) -> Iterator[Inbox]:
    """Show what waits for you: questions, crashes, failed gates, conflicts, reviews; each with the command for it.

    A question stays until it is answered or acknowledged, even if it was read. Urgent things come first, then what
    holds up more, then what has waited longest.
    """
    return _watch(ctx, all) if watch else iter([_look(ctx, all)])


def _look(ctx: Context, everything: bool) -> Inbox:
    items = service.list_items(ctx)
    shown = tuple(item for item in items if everything or item.state == OPEN)
    living = sessions.sessions(ctx.db, alive=True)
    working = tuple(session.agent for session in living if session.state != WAITING)
    return Inbox(shown, sum(item.state != OPEN for item in items), working)


def _watch(ctx: Context, everything: bool) -> Iterator[Inbox]:
    shown = None
    with Commits(ctx.db.path, rest=_SHORTEST_SECONDS) as commits:
        while True:
            now = _look(ctx, everything)
            if now != shown:
                yield now
            shown = now
            commits.wait(_LONGEST_SECONDS)  # a snooze may have ended as well


@op("inbox show", needs="inbox.read", view="inbox.opened")
def show(ctx: Context, key: KeyArg) -> list[Opened]:
    """Show items at length: a question with its thread, a gate's last lines, the whole reason. Nothing is marked."""
    items = service.list_items(ctx)
    return [opened.look(ctx, item) for item in service.choose(items, key)]


@op("inbox ack", needs="inbox.write", owns=NOTHING, view="inbox.marked")
def ack(ctx: Context, key: KeyArg) -> list[Item]:
    """Acknowledge items: they are settled for you, and show up again only when something new happens to them.

    A question that is acknowledged counts as answered; its sender gets no reply.
    """
    return service.acknowledge(ctx, key)


@op("inbox snooze", needs="inbox.write", owns=NOTHING, view="inbox.marked")
def snooze(
    ctx: Context,
    key: KeyArg,
    *,
    for_: Annotated[str, Doc("For how long, such as 30m, 2h or 1d (2h).")] = "2h",
) -> list[Item]:
    """Hide items for a while."""
    return service.snooze(ctx, key, for_)


@op("inbox unack", needs="inbox.write", owns=NOTHING, view="inbox.marked")
def unack(ctx: Context, key: KeyArg) -> list[Item]:
    """Show items again that were acknowledged or snoozed."""
    return service.reopen(ctx, key)
