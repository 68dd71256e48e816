"""What an interactive agent's program calls at the beginning and the end of each of its turns."""

from __future__ import annotations

from rookery.agents import store
from rookery.agents.ending import end_session
from rookery.agents.home import Home
from rookery.agents.model import COMPLETED, TURN_DONE, WAITING, Session
from rookery.agents.turns import BEGIN, MAIL, open_turn, take_snapshot
from rookery.agents.wake import start_runner, wake
from rookery.base.errors import InvalidState
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.mail.identity import prove
from rookery.ops.operation import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


@op("hook prompt", needs="hook.write", view="plain.lines")
def prompt(ctx: Context) -> str:
    """Begin a turn of the calling agent, and give it its mail."""
    home = Home.of(ctx)
    with ctx.db.write() as db:
        session = _own_session(ctx)
        running = store.running_turn(db, session.id)
        if running is not None:
            _close(home, session, running.id)
            session = store.session(db, session.id)
        cause = MAIL if store.turns(db, session.id) else BEGIN
        _, text = open_turn(home, session, cause)
    return text


@op("hook stop", needs="hook.write", view="plain.lines")
def stop(ctx: Context) -> str:
    """End the turn of the calling agent: snapshot, mail acknowledged, and its life too if it has said so."""
    home = Home.of(ctx)
    session = _own_session(ctx)
    turn = store.running_turn(ctx.db, session.id)
    if turn is None:
        return ""
    snapshot = take_snapshot(home, session, turn.number)
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        store.change_turn(db, turn, snapshot=snapshot)
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
        wake(home.root, ctx.db, [session.agent])
    return ""


def _own_session(ctx: Context) -> Session:
    caller = prove(ctx.db, ctx.environ)
    if caller.session_id is None:
        raise InvalidState("only an agent has turns", hint="this is called by an agent's own program")
    return store.session(ctx.db, caller.session_id)


def _close(home: Home, session: Session, turn_id: str) -> None:
    db, now = home.db, home.now()
    turn = next(each for each in store.turns(db, session.id) if each.id == turn_id)
    store.change_turn(db, turn, state=TURN_DONE, exit_status=0, ended_at=now)
    mail.acknowledge(db, turn.id, now)
    data = {"turn_id": turn.id, "number": turn.number, "ok": True, "exit_status": 0}
    publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
