"""The operation that interrupts what an agent is doing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.base.json import dumps
from rookery.base.record import Record
from rookery.config import layout
from rookery.costs import store as costs
from rookery.events.store import publish
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, op
from rookery.processes.proctree import send
from rookery.runtimes.model import HEADLESS
from rookery.runtimes.registry import open_runtime
from rookery.sessions import journal, store
from rookery.sessions.model import TURN_INTERRUPTED, Session, Turn, TurnEnd
from rookery.terminal.tmux import Tmux
from rookery.turns.interrupt import SIGNAL
from rookery.turns.settlement import read_usage, settle_turn, take_snapshot


@dataclass(frozen=True, slots=True)
class Interrupted(Record):
    """A turn that was asked to end."""

    PRINTS = "agent"
    agent: str
    turn: int
    by: str


@op("interrupt", needs="agent.write", long=True, touches=PROCESS, view="agents.interrupted")
def interrupt(ctx: Context, name: Annotated[str, Owns(AGENTS), Doc("The agent.")]) -> Interrupted:
    """Interrupt what an agent is doing. It keeps its conversation, and waits for mail."""
    by = ctx.caller.name
    with ctx.db.write() as db:
        session = store.find_living(db, name)
        turn = store.running_turn(db, session.id)
        if turn is None:
            raise InvalidState(f"{name} is {session.state}: there is no turn to interrupt", hint=f"`rook nudge {name}`")
        data = {"turn_id": turn.id, "number": turn.number, "by": by}
        publish(db, "turn.interrupting", name, data, actor=by, at=ctx.now())
    if session.mode == HEADLESS:
        _interrupt_runner(ctx, session, turn, by)
    else:
        _interrupt_terminal(ctx, session, turn, by)
    return Interrupted(name, turn.number, by)


def _interrupt_runner(ctx: Context, session: Session, turn: Turn, by: str) -> None:
    """Ask the turn's runner; one that is just starting looks for requests once the conversation has begun."""
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_INTERRUPT)
    write_whole(path, dumps({"turn_id": turn.id, "by": by}))
    is_starting = journal.is_running(ctx.root, turn.id) and not journal.find(ctx.root, turn.id, journal.RUNNER)
    runner = journal.find_runner(ctx.root, turn.id)
    if not is_starting and not (runner is not None and send(runner, SIGNAL)):
        raise InvalidState(f"no process runs {session.agent}'s turn any more", hint="`rook loop run` settles it")


def _interrupt_terminal(ctx: Context, session: Session, turn: Turn, by: str) -> None:
    """Press the key. Programs call no hook after it, so the turn is settled here, and first: a stop then finds none."""
    tmux, name = Tmux(ctx.tmux_socket), session.terminal
    if not tmux.has(name):
        raise InvalidState(f"{session.agent} has no terminal any more", hint="`rook loop run` settles it")
    end = TurnEnd(TURN_INTERRUPTED, last_words=f"interrupted by {by}", interrupted_by=by)
    if not settle_turn(ctx, session, turn, end, can_end_session=False):
        raise InvalidState(f"turn {turn.number} of {session.agent} has ended meanwhile")
    tmux.send_key(name, open_runtime(session.runtime).INTERRUPT_KEY)
    snapshot, usage = take_snapshot(ctx, session, turn), read_usage(ctx, session, turn.id)
    with ctx.db.write() as db:
        store.change_turn(db, store.turn(db, turn.id), snapshot=snapshot)
        costs.add_usage(db, turn.id, usage)
