"""What we offer of the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rookery.base.clock import is_stamp, parse_duration, stamp
from rookery.base.errors import InvalidInput
from rookery.db.commits import Commits
from rookery.db.database import Database
from rookery.events import store
from rookery.events.model import Event
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, Doc, Ref, op

_LONGEST_SECONDS = 60.0
_DEFAULT_LIMIT = 50


@op("events", needs="events.read", view="events.row")
def events(
    ctx: Context,
    *,
    follow: Annotated[bool, FOLLOWS, Doc("Go on and show events as they happen, until interrupted.")] = False,
    since: Annotated[
        str | None, Doc("Only what is newer: a duration such as 10m, or a time such as 2026-01-31T12:00:00.000Z.")
    ] = None,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only what this agent (or `human`) did.")] = None,
    type: Annotated[tuple[str, ...], Doc("Only this type, or a family of types such as `task`.")] = (),
    after: Annotated[
        int | None, Doc("The number of the last event of the page before: go on after it, the oldest first.")
    ] = None,
    limit: Annotated[
        int | None, Doc(f"How many at most, the newest ones without `--after` ({_DEFAULT_LIMIT}; 0 for all).")
    ] = None,
) -> Iterator[Event]:
    """Show what has happened in the project.

    Every change of a task, learning, agent or merge is an event, committed together with the change itself.
    With `--json`, each event is an envelope on a line of its own. Their numbers grow, so that `--after` goes on where a
    page ended, and with `--follow` misses nothing.
    """
    if after is not None and after < 0:
        raise InvalidInput("the number of an event is not negative", hint="`--after 0` begins with the first")
    if limit is not None and limit < 0:
        raise InvalidInput("the limit is negative", hint="0 shows all")
    start = None if since is None else _since(ctx, since)
    # A bare call shows the newest; a time, or following from a number, asks for everything from then on.
    is_open = since is not None or (follow and after is not None)
    count = limit if limit is not None else (0 if is_open else _DEFAULT_LIMIT)
    return _stream(ctx, follow, start, agent, type, after, count or -1)


def _stream(
    ctx: Context,
    follow: bool,
    since: str | None,
    agent: str | None,
    kinds: tuple[str, ...],
    after: int | None,
    limit: int,
) -> Iterator[Event]:
    db = ctx.db
    seen = store.last_seq(db)
    page = store.read(
        db,
        after=after or 0,
        before=seen + 1,
        since=since,
        kinds=kinds,
        actor=agent,
        limit=limit,
        newest=after is None,
    )
    yield from page
    if after is not None and len(page) == limit:
        seen = page[-1].seq  # following goes on behind the page
    if follow:
        yield from _follow(db, seen, agent, kinds)


def _follow(db: Database, seen: int, agent: str | None, kinds: tuple[str, ...]) -> Iterator[Event]:
    version = -1
    with Commits(db.path) as commits:
        while True:
            if db.data_version != version:
                version = db.data_version
                for event in store.read(db, after=seen, kinds=kinds, actor=agent):
                    seen = event.seq
                    yield event
            commits.wait(_LONGEST_SECONDS)


def _since(ctx: Context, text: str) -> str:
    if is_stamp(text):
        return text
    try:
        return stamp(ctx.clock() - parse_duration(text))
    except InvalidInput as error:
        raise InvalidInput(
            f"{text!r} is neither a duration nor a time", hint="write 10m, 2h or 2026-01-31T12:00:00.000Z"
        ) from error
