"""What an interactive agent's program calls at the beginning and the end of each of its turns."""

from __future__ import annotations

from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, op
from rookery.sessions import store
from rookery.turns.interactive import begin_turn, end_turn
from rookery.turns.service import prompt_of


@op("hook prompt", needs="hook.write", owns=NOTHING, view="plain.lines")
def prompt(ctx: Context) -> str:
    """Begin a turn of the calling agent, and give it its mail."""
    session_id = _own_session(ctx)
    cause, letters = begin_turn(ctx, session_id)
    return prompt_of(store.session(ctx.db, session_id), cause, letters)


@op("hook stop", needs="hook.write", owns=NOTHING, view="plain.lines")
def stop(ctx: Context) -> str:
    """End the turn of the calling agent: snapshot, mail acknowledged, and its life too if it has said so."""
    end_turn(ctx, _own_session(ctx))
    return ""


def _own_session(ctx: Context) -> str:
    caller = ctx.caller
    if caller.session_id is None:
        raise InvalidState("only an agent has turns", hint="this is called by an agent's own program")
    return caller.session_id
