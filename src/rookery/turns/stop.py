"""Stopping agents: those beneath first, the whole process tree, the work kept, everybody told."""

from __future__ import annotations

import time

from rookery.base import call as calls
from rookery.base.clock import stamp
from rookery.config import steps
from rookery.costs import store as costs
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.proctable import MARK, RUNNER
from rookery.processes.proctree import end_tree, marked
from rookery.runtimes.model import TMUX
from rookery.sandbox.model import clear_sockets, socket_folder
from rookery.sessions import journal, store
from rookery.sessions.model import STOPPED, STOPPING, NoSuchAgent, Session, Turn, is_stopping
from rookery.terminal.tmux import Tmux
from rookery.turns.ending import end_session
from rookery.turns.interrupt import find_runner
from rookery.turns.service import take_snapshot
from rookery.turns.usage import read_rest

_PATIENCE = 10.0
_PAUSE = 0.02
LEASE = 600.0
"""How long, in seconds, stopping may take where nobody here can see whether its process lives. It can be repeated."""


def stop(ctx: Context, name: str, reason: str, *, by: str) -> list[Session]:
    """Stop an agent and everything beneath it; safe to repeat after a kill."""
    session = store.living(ctx.db, name)
    if session is None:
        known = store.latest(ctx.db, name)
        if known is None:
            raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` shows who is and was there")
        return [known]
    ended: list[Session] = []
    for child in store.sessions(ctx.db, alive=True, parent=name):
        ended += stop(ctx, child.agent, f"{name} was stopped", by=by)
    session = _announce(ctx, session, by)
    steps.reached("stop announced")
    end_processes(ctx, session)
    steps.reached("stop killed")
    take_snapshot(ctx, session, store.last_number(ctx.db, session.id) + 1)
    steps.reached("stop snapshotted")
    ended.append(end_session(ctx, session.id, STOPPED, reason, tell_parent=by != session.parent))
    return ended


def finish(ctx: Context, session_id: str) -> None:
    """End what a killed `rook stop` has left of an agent; safe to repeat."""
    session = store.session(ctx.db, session_id)
    if not session.is_alive or not is_abandoned(ctx, session):
        return
    end_processes(ctx, session)
    take_snapshot(ctx, session, store.last_number(ctx.db, session.id) + 1)
    end_session(ctx, session.id, STOPPED, "stopped")


def sweep(ctx: Context, session_id: str) -> None:
    """End what an agent that has ended in its terminal left running; safe to repeat."""
    session = store.session(ctx.db, session_id)
    if session.is_alive or session.swept_at is not None:
        return
    end_processes(ctx, session)
    spent = read_rest(ctx, session)
    steps.reached("rest counted")
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if session.swept_at is not None:
            return
        turns = store.turns(db, session_id)
        if turns:
            costs.add_usage(db, turns[-1].id, spent)
        store.change_session(db, session, "", actor=session.agent, at=session.updated_at, swept_at=ctx.now())


def end_processes(ctx: Context, session: Session) -> None:
    """End the runner, the agent's program and all that it started."""
    turn = store.running_turn(ctx.db, session.id)
    if turn is not None:
        _end_runner(ctx, session, turn)  # first, so that it does not take the killed child for a crash
    if session.mode == TMUX:
        tmux = Tmux(ctx.tmux_socket)
        end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
        if tmux.has(session.terminal):
            tmux.kill(session.terminal)
    end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
    clear_sockets(socket_folder(session.id))  # the host of its sandbox was killed before it could


def _end_runner(ctx: Context, session: Session, turn: Turn) -> None:
    """End the turn's runner, also one that is only being started; nothing if it is on another host."""
    deadline = time.monotonic() + _PATIENCE
    while journal.is_running(ctx.root, turn.id) and time.monotonic() < deadline:
        runner = find_runner(ctx.root, turn.id)
        for process in [runner] if runner is not None else marked(RUNNER, session.id):
            end_tree(process, None, 0)
        calls.sleep(_PAUSE)


def is_abandoned(ctx: Context, session: Session) -> bool:
    """True if somebody began to stop the agent and died, or cannot be seen from here and takes very long."""
    if session.reason is None or not is_stopping(session):
        return False
    _, pid, start = session.reason.split(" ", 2)
    is_over = session.updated_at < stamp(ctx.clock() - LEASE)
    return holders.is_gone(holders.read(int(pid), start), lease_is_over=is_over)


def _announce(ctx: Context, session: Session, by: str) -> Session:
    """From here on the agent is being stopped, and by whom: after a kill, the loop finishes it.

    No turn begins after this.
    """
    me = holders.myself()
    reason = f"{STOPPING} {me.pid} {me.text}"
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        if session.is_alive:
            session = store.change_session(db, session, "agent.stopping", actor=by, at=ctx.now(), reason=reason)
    return session
