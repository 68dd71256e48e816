"""The turns of a program that lives in a terminal: it says when each begins and ends, and we keep the books."""

from __future__ import annotations

from rookery.agents import store
from rookery.agents.ending import end_session
from rookery.agents.model import COMPLETED, TURN_DONE, WAITING, Session
from rookery.agents.observing import notice_ends
from rookery.agents.spent import read_spent
from rookery.agents.turns import BEGIN, MAIL, open_turn, take_snapshot
from rookery.agents.wake import start_runner, wake
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.mail.inject import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.home import Home


def begin_turn(home: Home, session_id: str) -> tuple[str, str]:
    """Open the agent's next turn; why it begins, and the mail that it gets. One still open has ended by that."""
    with home.db.write() as db:
        session = store.session(db, session_id)
        running = store.running_turn(db, session.id)
        if running is not None:
            _close(home, session, running.id)
            session = store.session(db, session.id)
        cause = MAIL if store.turns(db, session.id) else BEGIN
        _, letters = open_turn(home, session, cause)
    return cause, letters


def take_mail(home: Home, session: Session) -> str:
    """Mail that came while the turn was running, for the turn to go on with; nothing once the work is over."""
    with home.db.write() as db:
        turn = store.running_turn(db, session.id)
        if turn is None or mail.terminal_since(db, session.id) is not None:
            return ""
        messages = mail.deliver(db, session.agent, turn.id, home.now())
        return render(messages, mail.waiting(db, session.agent)) if messages else ""


def end_turn(home: Home, session_id: str) -> None:
    """End the turn: snapshot, costs, mail acknowledged, and the agent's life too if it has said so."""
    session = store.session(home.db, session_id)
    turn = store.running_turn(home.db, session.id)
    if turn is None:
        return
    snapshot, spent = take_snapshot(home, session, turn.number), read_spent(home, session, turn)
    with home.db.write() as db:
        session = store.session(db, session.id)
        store.change_turn(db, turn, snapshot=snapshot)
        store.add_usage(db, turn.id, spent)
        _close(home, session, turn.id)
        finished = mail.terminal_since(db, session.id)
        if finished:
            end_session(home, session.id, COMPLETED, f"said {finished.type}")
        else:
            store.change_session(
                db, store.session(db, session.id), "agent.waiting", actor=session.agent, at=home.now(), state=WAITING
            )
        has_mail = mail.waiting(db, session.agent)
    if finished:
        start_runner(home.root, session.id)  # it sees that the life is over, and ends what is left of it
    elif has_mail:
        wake(home.root, home.db, [session.agent])
    notice_ends(home.root, home.db)


def _close(home: Home, session: Session, turn_id: str) -> None:
    db, now = home.db, home.now()
    turn = next(each for each in store.turns(db, session.id) if each.id == turn_id)
    store.change_turn(db, turn, state=TURN_DONE, exit_status=0, ended_at=now)
    mail.acknowledge(db, turn.id, now)
    data = {"turn_id": turn.id, "number": turn.number, "ok": True, "exit_status": 0}
    publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
