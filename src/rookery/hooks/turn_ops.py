"""Operations that an agent's own program calls in a terminal, at the beginning and the end of a turn."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, Doc, op
from rookery.sessions import store
from rookery.turns.interactive import begin_turn, end_turn
from rookery.turns.opening import prompt_of


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
    """End the turn of the calling agent: snapshot, mail acknowledged, and its session too if it has said so."""
    end_turn(ctx, _own_session(ctx))
    return ""


def _own_session(ctx: Context) -> str:
    if ctx.caller.session_id is None:
        raise InvalidState("only an agent has turns", hint="an agent's own program calls this")
    return ctx.caller.session_id
