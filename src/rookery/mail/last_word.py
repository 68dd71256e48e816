"""When a session's word that its work is over counts: not if the work was sent back and the agent has not seen why."""

from __future__ import annotations

from rookery.db.database import Database
from rookery.mail import store
from rookery.mail.model import Message
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.tasks.reviews import store as reviews

_SENT_BACK = (reviews.CHANGES_REQUESTED, reviews.REBASE_REQUESTED)


def last_word(db: Database, session: Session) -> Message | None:
    """The message with which a session said that its work is over, if it did and it knew what a reviewer asks for.

    An agent can hand its work in and go on with its turn. What it says then, before it has seen that the work was sent
    back, would hand in the same work again.
    """
    message = store.terminal_message(db, session)
    return None if message is None or _is_outdated(db, session, message) else message


def _is_outdated(db: Database, session: Session, message: Message) -> bool:
    """True if the work was sent back after the message, or the turn that saw why began later, or none has seen it."""
    step = None if session.task_id is None else reviews.last(db, session.task_id)
    if step is None or step.action not in _SENT_BACK or step.branch != session.branch:
        return False
    if message.created_at < step.at:
        return True
    request = store.first_since(db, step.actor, session.agent, step.at)
    if request is None:
        return False
    turn = None if request.turn_id is None else sessions.find_turn(db, request.turn_id)
    seen_at = request.read_at if turn is None else turn.started_at
    return seen_at is None or seen_at > message.created_at
