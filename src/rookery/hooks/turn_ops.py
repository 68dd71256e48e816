"""Operations that an agent's own program calls in a terminal, at the beginning and the end of a turn."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.ops.operation import LONG_TEXT, NOTHING, Doc, op
from rookery.runtimes.model import ERROR, FILE, TEXT, TOOL
from rookery.runtimes.registry import open_runtime
from rookery.sessions import store
from rookery.sessions.log import LogEntry
from rookery.sessions.records import write_record
from rookery.turns.collector import EventCollector
from rookery.turns.interactive import begin_turn, end_turn
from rookery.turns.opening import prompt_of

_RECORDED = (TEXT, TOOL, FILE, ERROR)
"""Usage is read from transcripts when the turn ends."""


@op("turn begin", needs="hook.write", owns=NOTHING, view="plain.lines")
def begin(
    ctx: Context,
    *,
    conversation: Annotated[str | None, Doc("The program's own name for the conversation.")] = None,
) -> str:
    """Begin a turn of the calling agent, and give it its mail."""
    session_id = _own_session(ctx)
    cause, mail_text = begin_turn(ctx, session_id, conversation)
    return prompt_of(store.session(ctx.db, session_id), cause, mail_text)


@op("turn end", needs="hook.write", owns=NOTHING, view="plain.lines")
def stop(ctx: Context) -> str:
    """End the turn of the calling agent, and its session too if it has sent its last message."""
    end_turn(ctx, _own_session(ctx))
    return ""


@op("turn record", needs="hook.write", owns=NOTHING, view="plain.lines")
def record(ctx: Context, event: Annotated[str, LONG_TEXT, Doc("What it did, as its runtime writes it.")]) -> str:
    """Record what the calling agent has just done."""
    session = store.session(ctx.db, _own_session(ctx))
    turn = store.running_turn(ctx.db, session.id)

    def write(entry: LogEntry) -> None:
        write_record(ctx.root, session, None if turn is None else turn.id, entry)

    collector = EventCollector(session.worktree, write, lambda _conversation: None)
    for line in open_runtime(session.runtime).read_line(event):
        if line.kind in _RECORDED:
            collector.add(line)
    return ""


def _own_session(ctx: Context) -> str:
    if ctx.caller.session_id is None:
        raise InvalidState("only an agent has turns", hint="an agent's own program calls this")
    return ctx.caller.session_id
