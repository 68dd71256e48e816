"""The events of a program that are not about a tool: its session begins, a prompt comes, the turn ends."""

from __future__ import annotations

from typing import Any

from rookery.base.json import dumps
from rookery.db.database import Database
from rookery.hooks.model import Answer
from rookery.hooks.prime import prime
from rookery.ops.context import Context
from rookery.runtimes.model import TMUX
from rookery.sessions.model import Session
from rookery.turns.interactive import begin_turn, end_turn, take_mail


def answer(root: str, db: Database, *, session: Session, event: str, payload: dict[str, Any]) -> Answer:
    """What the program is told at one of these events."""
    ctx = Context.at(root, db)
    if event == "session-start":
        # At the very beginning its instructions are fresh; later they may have been forgotten.
        return Answer() if payload.get("source") == "startup" else Answer(out=_prime(ctx, session.agent))
    if event == "pre-compact":
        return Answer(out=_prime(ctx, session.agent))
    if event == "prompt":
        return _prompt(ctx, session)
    if event == "stop":
        return _stop(ctx, session)
    return Answer()


def _prompt(ctx: Context, session: Session) -> Answer:
    if session.mode != TMUX:
        return Answer()  # the runner has opened the turn, and its mail is in the prompt
    _, letters = begin_turn(ctx, session.id)
    return Answer(out=letters)


def _stop(ctx: Context, session: Session) -> Answer:
    letters = take_mail(ctx, session)
    if letters:
        return Answer(out=dumps({"decision": "block", "reason": letters}))
    if session.mode == TMUX:
        end_turn(ctx, session.id)
    return Answer()


def _prime(ctx: Context, agent: str) -> str:
    return prime(ctx, agent, compact=True)
