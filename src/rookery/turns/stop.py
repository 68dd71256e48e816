"""Stopping agents: those beneath first, the whole process tree, the work kept, everybody told."""

from __future__ import annotations

import time

from rookery.base import call as calls
from rookery.base.clock import stamp
from rookery.config import steps
from rookery.processes import holder as holders
from rookery.processes.proctable import RUNNER
from rookery.processes.proctree import end_tree, marked
from rookery.runtimes.model import TMUX
from rookery.sandbox.model import clear_sockets, socket_folder
from rookery.sessions import journal, store
from rookery.sessions.home import MARK, Home
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


def stop(home: Home, name: str, reason: str, *, by: str) -> list[Session]:
    """Stop an agent and everything beneath it; safe to repeat after a kill."""
    session = store.living(home.db, name)
    if session is None:
        known = store.latest(home.db, name)
        if known is None:
            raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` shows who is and was there")
        return [known]
    ended: list[Session] = []
    for child in store.children(home.db, name):
        ended += stop(home, child.agent, f"{name} was stopped", by=by)
    session = _announce(home, session, by)
    steps.reached("stop announced")
    end_processes(home, session)
    steps.reached("stop killed")
    take_snapshot(home, session, store.last_number(home.db, session.id) + 1)
    steps.reached("stop snapshotted")
    ended.append(end_session(home, session.id, STOPPED, reason, tell_parent=by != session.parent))
    return ended


def finish(home: Home, session_id: str) -> None:
    """End what a killed `rook stop` has left of an agent; safe to repeat."""
    session = store.session(home.db, session_id)
    if not session.is_alive or not is_abandoned(home, session):
        return
    end_processes(home, session)
    take_snapshot(home, session, store.last_number(home.db, session.id) + 1)
    end_session(home, session.id, STOPPED, "stopped")


def sweep(home: Home, session_id: str) -> None:
    """End what an agent that has ended in its terminal left running; safe to repeat."""
    session = store.session(home.db, session_id)
    if session.is_alive or session.swept_at is not None:
        return
    end_processes(home, session)
    spent = read_rest(home, session)
    steps.reached("rest counted")
    with home.db.write() as db:
        session = store.session(db, session_id)
        if session.swept_at is not None:
            return
        turns = store.turns(db, session_id)
        if turns:
            store.add_usage(db, turns[-1].id, spent)
        store.change_session(db, session, "", actor=session.agent, at=session.updated_at, swept_at=home.now())


def end_processes(home: Home, session: Session) -> None:
    """End the runner, the agent's program and all that it started."""
    turn = store.running_turn(home.db, session.id)
    if turn is not None:
        _end_runner(home, session, turn)  # first, so that it does not take the killed child for a crash
    if session.mode == TMUX:
        tmux = Tmux(home.tmux_socket)
        end_tree(None, (MARK, session.id), home.config.agents.stop_grace)
        if tmux.has(session.terminal):
            tmux.kill(session.terminal)
    end_tree(None, (MARK, session.id), home.config.agents.stop_grace)
    clear_sockets(socket_folder(session.id))  # the host of its sandbox was killed before it could


def _end_runner(home: Home, session: Session, turn: Turn) -> None:
    """End the turn's runner, also one that is only being started; nothing if it is on another host."""
    deadline = time.monotonic() + _PATIENCE
    while journal.is_running(home.root, turn.id) and time.monotonic() < deadline:
        runner = find_runner(home.root, turn.id)
        for process in [runner] if runner is not None else marked(RUNNER, session.id):
            end_tree(process, None, 0)
        calls.sleep(_PAUSE)


def is_abandoned(home: Home, session: Session) -> bool:
    """True if somebody began to stop the agent and died, or cannot be seen from here and takes very long."""
    if session.reason is None or not is_stopping(session):
        return False
    _, pid, start = session.reason.split(" ", 2)
    is_over = session.updated_at < stamp(home.clock() - LEASE)
    return holders.is_gone(holders.read(int(pid), start), lease_is_over=is_over)


def _announce(home: Home, session: Session, by: str) -> Session:
    """From here on the agent is being stopped, and by whom: after a kill, the loop finishes it.

    No turn begins after this.
    """
    me = holders.myself()
    reason = f"{STOPPING} {me.pid} {me.text}"
    with home.db.write() as db:
        session = store.session(db, session.id)
        if session.is_alive:
            session = store.change_session(db, session, "agent.stopping", actor=by, at=home.now(), reason=reason)
    return session
