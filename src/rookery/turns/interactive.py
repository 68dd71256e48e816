"""The turns of a program in a terminal: its hooks say when each begins and ends, and Rookery keeps the record."""

from __future__ import annotations

import re

from rookery.mail import store as mail_store
from rookery.mail.last_word import last_word
from rookery.ops.context import Context
from rookery.processes.exits import killed_by
from rookery.processes.proctable import MARK
from rookery.processes.proctree import end_tree
from rookery.sessions import store
from rookery.sessions.model import COMPLETED, CRASHED, TURN_DONE, WAITING, Session, TurnEnd, is_stopping
from rookery.terminal.tmux import Tmux
from rookery.turns.opening import BEGIN, MAIL, deliver_mail, open_turn
from rookery.turns.settlement import close_turn, end_session, read_usage, settle_turn, take_snapshot
from rookery.turns.stop import sweep

YOU_HAVE_MAIL = "You have mail."
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def begin_turn(ctx: Context, session_id: str, conversation: object = None) -> tuple[str, str]:
    """Open the agent's next turn: why it begins, and the mail that it gets. This ends a turn that is still open.

    `conversation` is the program's own name for it, by which a later session goes on with it.
    """
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if _is_name(conversation) and conversation != session.runtime_session:
            session = store.change_session(db, session, runtime_session=conversation)
        running = store.running_turn(db, session.id)
        if running is not None:
            close_turn(ctx, session, running, TurnEnd(TURN_DONE, 0))
        cause = MAIL if store.turns(db, session.id) else BEGIN
        _, mail_text = open_turn(ctx, session, cause)
    return cause, mail_text


def _is_name(conversation: object) -> bool:
    """True for what can stand among a program's words: the hook's message is the agent's, and may hold an option."""
    return isinstance(conversation, str) and _NAME.fullmatch(conversation) is not None


def take_mail(ctx: Context, session: Session) -> str:
    """Mail that came while the turn was running, for the turn to go on with; nothing once the work is over."""
    with ctx.db.write() as db:
        turn = store.running_turn(db, session.id)
        if turn is None or last_word(db, session) is not None:
            return ""
        if session.hold is not None or not mail_store.has_waking(db, session.agent):
            return ""  # what wakes no agent keeps none awake either
        return deliver_mail(ctx, session, turn)


def end_turn(ctx: Context, session_id: str) -> None:
    """End the turn: snapshot, costs, mail acknowledged, and the session too if the agent has said so."""
    session, turn = store.session(ctx.db, session_id), store.running_turn(ctx.db, session_id)
    if turn is not None:
        snapshot, usage = take_snapshot(ctx, session, turn), read_usage(ctx, session, turn.id)
        settle_turn(ctx, session, turn, TurnEnd(TURN_DONE, 0, usage=usage, snapshot=snapshot))


def announce_mail(ctx: Context, session_id: str) -> None:
    """Tell an agent in its terminal that it has mail: once for each message, twice if killed in between."""
    session = store.session(ctx.db, session_id)
    newest = mail_store.newest_new(ctx.db, session.agent)
    if session.state != WAITING or newest <= session.nudged or session.hold is not None:
        return
    tmux, name = Tmux(ctx.tmux_socket), session.terminal
    if tmux.has(name):
        tmux.send_text(name, YOU_HAVE_MAIL)
        tmux.enter(name)
    with ctx.db.write() as db:
        store.change_session(db, store.session(db, session_id), nudged=newest)


def end_terminal(ctx: Context, session_id: str) -> None:
    """End the session of a program that has ended in its terminal; nothing if it runs.

    The terminal is closed last: it tells how the program ended, also after a kill and to a process that comes second.
    """
    session = store.session(ctx.db, session_id)
    if not session.is_alive or is_stopping(session):
        return
    pane = Tmux(ctx.tmux_socket).list().get(session.terminal)
    if pane is not None and not pane.dead:
        return
    end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
    take_snapshot(ctx, session)
    status = None if pane is None else pane.exit_status
    reason = "its terminal is gone" if pane is None else killed_by(status) or f"exited with status {status}"
    is_finished = last_word(ctx.db, session) is not None
    end_session(ctx, session.id, COMPLETED if is_finished else CRASHED, reason, is_swept=False)
    sweep(ctx, session.id)
