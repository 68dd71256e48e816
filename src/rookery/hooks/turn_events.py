"""The events of a program that are not about a tool: its session begins, a prompt comes, the turn ends."""

from __future__ import annotations

from typing import Any

from rookery.base.json import dumps
from rookery.config.compiled import read_config
from rookery.config.environ import read_environ
from rookery.db.database import Database
from rookery.hooks.model import Answer
from rookery.hooks.prime import prime
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.home import Home
from rookery.sessions.model import Session
from rookery.turns.interactive import begin_turn, end_turn, take_mail


def answer(root: str, db: Database, *, session_id: str, event: str, payload: dict[str, Any]) -> Answer:
    """What the program is told at one of these events."""
    home = Home(root, db, read_config(root, read_environ(), {}))
    session = store.session(db, session_id)
    if event == "session-start":
        # At the very beginning its instructions are fresh; later they may have been forgotten.
        return Answer() if payload.get("source") == "startup" else Answer(out=_prime(home, session.agent))
    if event == "pre-compact":
        return Answer(out=_prime(home, session.agent))
    if event == "prompt":
        return _prompt(home, session)
    if event == "stop":
        return _stop(home, session)
    return Answer()


def _prompt(home: Home, session: Session) -> Answer:
    if session.mode != TMUX:
        return Answer()  # the runner has opened the turn, and its mail is in the prompt
    _, letters = begin_turn(home, session.id)
    return Answer(out=letters)


def _stop(home: Home, session: Session) -> Answer:
    letters = take_mail(home, session)
    if letters:
        return Answer(out=dumps({"decision": "block", "reason": letters}))
    if session.mode == TMUX:
        end_turn(home, session.id)
    return Answer()


def _prime(home: Home, agent: str) -> str:
    return prime(home, agent, compact=True)
