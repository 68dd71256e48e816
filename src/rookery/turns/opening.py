"""Opening a turn: why it begins, its row, the mail that it sees, and its prompt.

Mail counts as read only when the turn that saw it ended well.
"""

from __future__ import annotations

from rookery.base.ids import TURN, new_id
from rookery.mail import service as mail
from rookery.mail import store as mail_store
from rookery.mail.inject import render
from rookery.mail.model import Message
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import TURN_LOST, TURN_RUNNING, Session, Turn
from rookery.turns.instructions import first_prompt

BEGIN, MAIL, AGAIN = "begin", "mail", "again"
_AGAIN = "Your last turn was cut off before it ended. Look at where things are, and go on."


def find_cause(ctx: Context, session: Session) -> str | None:
    """Why the agent's next turn begins; None if there is no reason for one."""
    turns = store.turns(ctx.db, session.id)
    lost = count_lost(turns)
    if lost == len(turns):
        return BEGIN
    if lost:
        return AGAIN
    return MAIL if mail_store.has_waking(ctx.db, session.agent) else None


def count_lost(turns: list[Turn]) -> int:
    """How many turns in a row, up to the last one, were cut off."""
    return next((number for number, turn in enumerate(reversed(turns)) if turn.state != TURN_LOST), len(turns))


def open_turn(ctx: Context, session: Session, cause: str, turn_id: str = "") -> tuple[Turn, str]:
    """Within the caller's transaction: the turn's row, and the mail that it sees as text."""
    db, now = ctx.db, ctx.now()
    number = store.last_number(db, session.id) + 1
    turn = Turn(
        turn_id or new_id(TURN), session.id, number, cause, TURN_RUNNING, None, None, None, None, None, now, None
    )
    store.insert_turn(db, turn, session.agent, at=now)
    store.change_session(db, session, at=now, move="begin turn", active_at=now)
    return turn, deliver_mail(ctx, session, turn)


def deliver_mail(ctx: Context, session: Session, turn: Turn) -> str:
    """New mail as text; the running turn has seen it from now on. Empty if there is none."""
    return render_mail(ctx, session, mail.deliver(ctx.db, session.agent, turn.id, ctx.now()))


def render_mail(ctx: Context, session: Session, messages: list[Message]) -> str:
    """Messages as text for a prompt."""
    return render(messages, mail_store.count_new(ctx.db, session.agent)) if messages else ""


def prompt_of(session: Session, cause: str, mail_text: str) -> str:
    """The prompt of a turn."""
    text = {BEGIN: first_prompt(session), MAIL: "", AGAIN: _AGAIN}[cause]
    return "\n\n".join(part for part in (text, mail_text) if part)
