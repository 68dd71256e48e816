"""A person's own agent sessions as readers of the person's mail.

They act for the person and share the inbox, but what one of them was shown the person has not read: every session is
shown each message once, whatever the person or another session has read.
"""

from __future__ import annotations

from rookery.base.clock import has_passed, seconds_of, stamp
from rookery.mail import reader_store
from rookery.ops.context import Context

_FORGOTTEN_AFTER = 30 * 86400.0
_MOST = 100
_REFRESHED_AFTER = 86400.0
"""A session that asks all the time is written only so often."""


def reader_of(ctx: Context) -> str | None:
    """The own agent session that a person's call comes from; None for the person at a terminal, and for agents."""
    return ctx.environ.own_session if ctx.caller.is_human else None


def is_known(ctx: Context, reader: str) -> bool:
    """True if nothing has to be written for a session that asks for mail and gets none."""
    seen_at = reader_store.last_contact(ctx.db, reader)
    return seen_at is not None and not has_passed(_REFRESHED_AFTER, seconds_of(seen_at), ctx.clock())


def greet(ctx: Context, reader: str) -> None:
    """Within a transaction: a session asks for mail. Sessions that have not done so for long are forgotten."""
    now = ctx.clock()
    reader_store.keep_contact(ctx.db, reader, stamp(now))
    reader_store.forget_old(ctx.db, before=stamp(now - _FORGOTTEN_AFTER), most=_MOST)


def register(ctx: Context, reader: str) -> None:
    """A session begins: what comes from now on is new for it."""
    if not is_known(ctx, reader):
        with ctx.db.write():
            greet(ctx, reader)
