"""The turns of a program that lives in a terminal: it says when each begins and ends, and we keep the books."""

from __future__ import annotations

from rookery.costs import store as costs
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.mail import store as mail_store
from rookery.mail.inject import render
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import COMPLETED, CRASHED, TURN_DONE, WAITING, Session, Turn, is_stopping
from rookery.terminal.tmux import Tmux
from rookery.turns.ending import end_session, find_work, finish_end, settle_end
from rookery.turns.service import BEGIN, MAIL, open_turn, take_snapshot
from rookery.turns.stop import end_processes
from rookery.turns.usage import read_spent

YOU_HAVE_MAIL = "You have mail."


def begin_turn(ctx: Context, session_id: str) -> tuple[str, str]:
    """Open the agent's next turn; why it begins, and the mail that it gets. One still open has ended by that."""
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        running = store.running_turn(db, session.id)
        if running is not None:
            _close(ctx, session, running)
            session = store.session(db, session.id)
        cause = MAIL if store.turns(db, session.id) else BEGIN
        _, letters = open_turn(ctx, session, cause)
    return cause, letters


def take_mail(ctx: Context, session: Session) -> str:
    """Mail that came while the turn was running, for the turn to go on with; nothing once the work is over."""
    with ctx.db.write() as db:
        turn = store.running_turn(db, session.id)
        if turn is None or mail.terminal_message(db, session) is not None:
            return ""
        messages = mail.deliver(db, session.agent, turn.id, ctx.now())
        return render(messages, mail_store.count_new(db, session.agent)) if messages else ""


def end_turn(ctx: Context, session_id: str) -> None:
    """End the turn: snapshot, costs, mail acknowledged, and the agent's life too if it has said so."""
    session = store.session(ctx.db, session_id)
    turn = store.running_turn(ctx.db, session.id)
    if turn is None:
        return
    snapshot, spent = take_snapshot(ctx, session, turn.number), read_spent(ctx, session, turn)
    work = find_work(ctx, session)
    with ctx.db.write() as db:
        running = store.running_turn(db, session.id)
        if running is None or running.id != turn.id:
            return  # it was interrupted or stopped meanwhile
        session = store.session(db, session.id)
        costs.add_usage(db, turn.id, spent)
        _close(ctx, session, store.change_turn(db, running, snapshot=snapshot))
        finished = mail.terminal_message(db, session)
        session = store.session(db, session.id)
        if finished:  # the program still runs, and calls us: the loop ends it
            settle_end(ctx, session, COMPLETED, f"said {finished.type}", work, is_swept=False)
        else:
            store.change_session(db, session, "agent.waiting", actor=session.agent, at=ctx.now(), move="wait")
            return
    finish_end(ctx, session)


def speak(ctx: Context, session_id: str) -> None:
    """Tell an agent in its terminal that it has mail; once for each message, twice if killed in between."""
    session = store.session(ctx.db, session_id)
    newest = mail_store.newest_new(ctx.db, session.agent)
    if session.state != WAITING or newest <= session.nudged:
        return
    tmux, name = Tmux(ctx.tmux_socket), session.terminal
    if tmux.has(name):
        tmux.send_text(name, YOU_HAVE_MAIL)
        tmux.enter(name)
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        store.change_session(db, session, "", actor=session.agent, at=session.updated_at, nudged=newest)


def end_terminal(ctx: Context, session_id: str) -> None:
    """End the session of a program that has ended in its terminal; nothing if it runs."""
    session = store.session(ctx.db, session_id)
    if not session.is_alive or is_stopping(session):
        return
    pane = Tmux(ctx.tmux_socket).list().get(session.terminal)
    if pane is not None and not pane.dead:
        return
    end_processes(ctx, session)
    take_snapshot(ctx, session, store.last_number(ctx.db, session.id) + 1)
    status = "its terminal is gone" if pane is None else f"exit status {pane.exit_status}"
    finished = mail.terminal_message(ctx.db, session)
    end_session(ctx, session.id, COMPLETED if finished else CRASHED, status)


def _close(ctx: Context, session: Session, turn: Turn) -> None:
    db, now = ctx.db, ctx.now()
    store.change_turn(db, turn, state=TURN_DONE, exit_status=0, ended_at=now)
    mail.acknowledge(db, turn.id, now)
    data = {"turn_id": turn.id, "number": turn.number, "ok": True, "exit_status": 0}
    publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
