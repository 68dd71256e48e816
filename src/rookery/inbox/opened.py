"""One item at length: the whole text behind it, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.inbox import model
from rookery.inbox.model import Item
from rookery.mail import store as mail
from rookery.mail.model import Message
from rookery.merge import service as landing
from rookery.merge import store as merges
from rookery.merge.model import way_out
from rookery.ops.context import Context
from rookery.sessions import store as sessions

_MESSAGES = (model.QUESTION, model.DECISION, model.ESCALATION, model.ERROR)
_LANDINGS = (model.GATE, model.CONFLICT, model.LANDING, model.BASE)


@dataclass(frozen=True, slots=True)
class Opened(Record):
    """An item with the text behind it."""

    PRINTS = "item"
    item: Item
    text: str
    """The question, the reason, or the error: all of it."""
    thread: tuple[Message, ...] = ()
    """The messages of a question's thread, the oldest first."""
    files: tuple[str, ...] = ()
    """The files in conflict, or those that block a landing."""
    output: str = ""
    """The last lines of a gate's output."""
    log: str | None = None
    """Where all of it is."""
    worktree: str | None = None
    branch: str | None = None


def look(ctx: Context, item: Item) -> Opened:
    """Read what is behind an item; also one that has been settled meanwhile."""
    if item.kind in _MESSAGES:
        return _message(ctx, item)
    if item.kind in _LANDINGS:
        return _landing(ctx, item)
    if item.kind in (model.CRASH, model.IDLE, model.STRAY):
        session = sessions.session(ctx.db, item.id)
        turns = sessions.turns(ctx.db, item.id)
        text, output = session.reason or item.why, (turns[-1].last_words if turns else "") or ""
        shown = "" if output in text else output
        return Opened(item, text, output=shown, worktree=session.worktree, branch=session.branch)
    return Opened(item, item.why)


def _message(ctx: Context, item: Item) -> Opened:
    with ctx.db.read() as db:
        message = mail.get(db, item.id)
        thread = mail.thread(db, message.thread_id)
    return Opened(item, message.body or message.subject, tuple(thread) if len(thread) > 1 else ())


def _landing(ctx: Context, item: Item) -> Opened:
    entry = landing.with_output(merges.get(ctx.db, item.id))
    text = entry.reason or item.why
    if item.kind == model.BASE:
        text += f"\n{way_out(entry.base)}"
    output = entry.last_lines or ("(it printed nothing)" if entry.log else "")
    return Opened(item, text, files=entry.files, output=output, log=entry.log, branch=entry.branch)
