"""What a turn has used that did not say so itself: one in a terminal, or one that was cut off."""

from __future__ import annotations

from typing import Any

from rookery.costs.prices import price
from rookery.ops.context import Context
from rookery.runtimes.registry import open_runtime
from rookery.sessions import store
from rookery.sessions.model import TURN_RUNNING, Session, Turn


def read_spent(ctx: Context, session: Session, turn: Turn | None) -> list[dict[str, Any]]:
    """The usage of a turn, priced, for whoever settles it; nothing without a turn, or where no transcripts are kept.

    Whoever settles a turn asks, also if the turn has said itself what it used: so the next one is counted from there.
    """
    return [] if turn is None else _read(ctx, session, turn.id)


def read_rest(ctx: Context, session: Session) -> list[dict[str, Any]]:
    """What a program in a terminal wrote down only after its last turn was settled, for whoever sweeps up behind it."""
    return _read(ctx, session, session.id)


def _read(ctx: Context, session: Session, counted_as: str) -> list[dict[str, Any]]:
    def is_settled(turn_id: str) -> bool:
        turns = store.turns(ctx.db, session.id)
        return any(each.id == turn_id and each.state != TURN_RUNNING for each in turns)

    used = open_runtime(session.runtime).usage_of_turn(ctx.runtime_folder(session.id), counted_as, is_settled)
    return [price(each, session.model, ctx.config) for each in used]
