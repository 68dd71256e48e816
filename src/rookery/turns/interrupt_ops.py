"""What we offer to whoever wants an agent to stop what it does and listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.costs import store as costs
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, op
from rookery.runtimes.model import HEADLESS
from rookery.runtimes.registry import open_runtime
from rookery.sessions import store
from rookery.sessions.model import TURN_INTERRUPTED, NoSuchAgent, Session, Turn
from rookery.terminal.tmux import Tmux
from rookery.turns import interrupt as requests
from rookery.turns.service import take_snapshot
from rookery.turns.usage import read_spent


@dataclass(frozen=True, slots=True)
class Interrupted(Record):
    """A turn that was asked to end."""

    agent: str
    turn: int
    by: str


@op("interrupt", needs="agent.write", long=True, touches=PROCESS, view="agents.interrupted")
def interrupt(ctx: Context, name: Annotated[str, Owns(AGENTS), Doc("The agent.")]) -> Interrupted:
    """Interrupt what an agent is doing. It stays alive, knows what it knew, and waits for mail."""
    by = ctx.caller.name
    with ctx.db.write() as db:
        session, turn = _running(ctx, name)
        data = {"turn_id": turn.id, "number": turn.number, "by": by}
        publish(db, "turn.interrupting", name, data, actor=by, at=ctx.now())
    if session.mode == HEADLESS:
        if not requests.request(ctx, session, turn, by):
            raise InvalidState(f"nobody runs {name}'s turn any more", hint="`rook status` sees to it")
    else:
        _interrupt_terminal(ctx, session, turn, by)
    return Interrupted(name, turn.number, by)


def _running(ctx: Context, name: str) -> tuple[Session, Turn]:
    session = store.living(ctx.db, name)
    if session is None:
        if store.latest(ctx.db, name) is None:
            raise NoSuchAgent(f"no agent {name}", hint="`rook status` shows who is there")
        raise InvalidState(f"{name} has ended", hint="`rook sling` brings one to life")
    turn = store.running_turn(ctx.db, session.id)
    if turn is None:
        raise InvalidState(f"{name} is {session.state}: there is no turn to interrupt", hint=f"`rook nudge {name}`")
    return session, turn


def _interrupt_terminal(ctx: Context, session: Session, turn: Turn, by: str) -> None:
    """Press the key. Programs call no hook after it, so the turn is settled here, and first: a stop then finds none."""
    tmux, name = Tmux(ctx.tmux_socket), session.terminal
    if not tmux.has(name):
        raise InvalidState(f"{session.agent} has no terminal any more", hint="`rook status` sees to it")
    with ctx.db.write() as db:
        now = ctx.now()
        session = store.session(db, session.id)
        running = store.running_turn(db, session.id)
        if running is None or running.id != turn.id:
            raise InvalidState(f"turn {turn.number} of {session.agent} has ended meanwhile")
        words = f"interrupted by {by}"
        turn = store.change_turn(db, running, state=TURN_INTERRUPTED, last_words=words, ended_at=now)
        mail.acknowledge(db, turn.id, now)
        data = {"turn_id": turn.id, "number": turn.number, "ok": False, "interrupted_by": by}
        publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
        store.change_session(db, session, "agent.waiting", actor=session.agent, at=now, move="wait")
    tmux.send_key(name, open_runtime(session.runtime).INTERRUPT_KEY)
    snapshot, spent = take_snapshot(ctx, session, turn.number), read_spent(ctx, session, turn)
    with ctx.db.write() as db:
        store.change_turn(db, turn, snapshot=snapshot)
        costs.add_usage(db, turn.id, spent)
