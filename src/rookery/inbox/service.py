"""What waits for a person, read from the tables at every call, and what a person puts away of it."""

from __future__ import annotations

from collections.abc import Iterable

from rookery.base.clock import has_passed, parse_duration, seconds_of, stamp
from rookery.base.errors import InvalidState
from rookery.db.database import Database
from rookery.events.store import publish
from rookery.inbox import model, store
from rookery.inbox.items import Rows, derive
from rookery.inbox.model import ACKNOWLEDGED, OPEN, SNOOZED, Item, Mark
from rookery.merge.lease_store import bases_at_work
from rookery.ops.context import Context


def count_open(ctx: Context) -> int:
    """How many things wait for a person and are not put away."""
    return sum(item.state == OPEN for item in _read(ctx, ""))


def list_items(ctx: Context) -> list[Item]:
    """Everything that waits, also what is put away, in the order in which a person should see it."""
    return _read(ctx, ctx.config.project.base or "")


def _read(ctx: Context, base: str) -> list[Item]:
    now = ctx.clock()
    with ctx.db.read() as db:
        rows, marks = _rows(db, stamp(now)), store.marks(db)
    return [_with_mark(item, marks.get(item.key), now) for item in derive(rows, base)]


def _rows(db: Database, now: str) -> Rows:
    queued = store.queued(db)
    busy = bases_at_work(db, now) if queued else set[str]()
    return Rows(
        store.asked(db),
        store.broken(db),
        store.failed(db),
        store.stuck(db),
        [entry for entry in queued if entry.base not in busy],
        store.idle(db),
        store.stray(db),
        store.given_up(db),
        store.in_review(db),
    )


def _with_mark(item: Item, mark: Mark | None, now: float) -> Item:
    if mark is None:
        return item
    if mark.until is None:
        return item.replace(state=ACKNOWLEDGED)
    since = seconds_of(mark.at)
    if has_passed(seconds_of(mark.until) - since, since, now):
        return item
    return item.replace(state=SNOOZED, until=mark.until)


def choose(items: Iterable[Item], texts: Iterable[str]) -> list[Item]:
    """The items that texts name, one of each."""
    known = list(items)
    chosen = {item.key: item for item in (model.find(known, text) for text in texts)}
    return list(chosen.values())


def acknowledge(ctx: Context, texts: Iterable[str]) -> list[Item]:
    """Put items away for good; something new that happens to one of them shows up again."""
    return _put_away(ctx, texts, None)


def snooze(ctx: Context, texts: Iterable[str], length: str) -> list[Item]:
    """Put items away for a while."""
    return _put_away(ctx, texts, stamp(ctx.clock() + parse_duration(length)))


def _put_away(ctx: Context, texts: Iterable[str], until: str | None) -> list[Item]:
    state = ACKNOWLEDGED if until is None else SNOOZED
    now, actor = ctx.now(), ctx.actor
    with ctx.db.write() as db:
        items = _read(ctx, "")
        chosen = choose(items, texts)
        for item in chosen:
            store.put_away(db, Mark(item.key, until, actor, now))
            publish(db, f"inbox.{state}", item.key, {"until": until}, actor=actor, at=now)
        for key in store.marks(db).keys() - {item.key for item in items}:
            store.forget(db, key)  # what it was about is settled
    return [item.replace(state=state, until=until) for item in chosen]


def reopen(ctx: Context, texts: Iterable[str]) -> list[Item]:
    """Let items that were put away be open again."""
    now, actor = ctx.now(), ctx.actor
    with ctx.db.write() as db:
        items = _read(ctx, "")
        chosen = choose(items, texts)
        for item in chosen:
            if item.state == OPEN:
                raise InvalidState(f"{item.handle} is not put away", hint="`rook inbox --all` shows what is")
            store.forget(db, item.key)
            publish(db, "inbox.reopened", item.key, {}, actor=actor, at=now)
    return [item.replace(state=OPEN, until=None) for item in chosen]
