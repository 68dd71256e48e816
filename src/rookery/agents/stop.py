"""Stopping agents: those beneath first, the whole process tree, the work kept, everybody told."""

from __future__ import annotations

from rookery.agents import store
from rookery.agents.ending import end_session
from rookery.agents.home import MARK
from rookery.agents.model import STOPPED, NoSuchAgent, Session
from rookery.agents.sandbox.model import clear_sockets, socket_folder
from rookery.agents.start import terminal_name
from rookery.agents.turns import take_snapshot
from rookery.agents.wake import wake
from rookery.base import holder as holders
from rookery.base.clock import stamp
from rookery.base.proctree import end_tree
from rookery.config import steps
from rookery.runtimes.model import TMUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.home import Home

STOPPING = "stopping"
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
    take_snapshot(home, session, len(store.turns(home.db, session.id)) + 1)
    steps.reached("stop snapshotted")
    ended.append(end_session(home, session.id, STOPPED, reason, tell_parent=by != session.parent))
    wake(home.root, home.db, [session.parent])
    return ended


def end_processes(home: Home, session: Session) -> None:
    """End the runner, the agent's program and all that it started."""
    if session.runner_pid is not None and session.runner_start is not None:
        # The runner goes first, so that it does not take the killed child for a crash.
        runner = holders.process_of(holders.read(session.runner_pid, session.runner_start))
        if runner is not None:
            end_tree(runner, None, 0)
    if session.mode == TMUX:
        from rookery.terminal.tmux import Tmux

        tmux = Tmux(home.tmux_socket)
        end_tree(None, (MARK, session.id), home.config.agents.stop_grace)
        if tmux.has(terminal_name(session)):
            tmux.kill(terminal_name(session))
    end_tree(None, (MARK, session.id), home.config.agents.stop_grace)
    clear_sockets(socket_folder(session.id))  # the host of its sandbox was killed before it could


def is_abandoned(home: Home, session: Session) -> bool:
    """True if somebody began to stop the agent and died, or cannot be seen from here and takes very long."""
    if session.reason is None or not is_stopping(session):
        return False
    _, pid, start = session.reason.split(" ", 2)
    is_over = session.updated_at < stamp(home.clock() - LEASE)
    return holders.is_gone(holders.read(int(pid), start), lease_is_over=is_over)


def is_stopping(session: Session) -> bool:
    """True if a process stops the agent, or died while it did."""
    return session.reason is not None and session.reason.startswith(STOPPING)


def _announce(home: Home, session: Session, by: str) -> Session:
    """From here on the agent is being stopped, and by whom: after a kill, `recovery` finishes it.

    The row names the runner that has to be ended. No other starts to drive the agent after this.
    """
    me = holders.myself()
    reason = f"{STOPPING} {me.pid} {me.text}"
    with home.db.write() as db:
        session = store.session(db, session.id)
        if session.is_alive:
            session = store.change_session(db, session, "agent.stopping", actor=by, at=home.now(), reason=reason)
    return session
