"""What a kill or a reboot left behind, found by the next command: finished where a life has begun, undone where not.

`notice` is cheap and runs in front of commands; what it finds is mended by `recover`.
"""

from __future__ import annotations

import os

from rookery.agents import store
from rookery.agents.ending import end_session
from rookery.agents.model import BOOTING, CRASHED, READY, STOPPED, Session
from rookery.agents.runner import is_driven
from rookery.agents.sling import undo
from rookery.agents.start import terminal_name
from rookery.agents.stop import end_processes, is_abandoned
from rookery.agents.turns import take_snapshot
from rookery.agents.wake import start_runner, wake
from rookery.base.record import Record
from rookery.mail import service as mail
from rookery.runtimes.model import HEADLESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.home import Home


class Mended(Record):
    """What was found, and what was done about it."""

    agent: str
    found: str
    done: str


def recover(home: Home) -> list[Mended]:
    """Look at every living agent and mend what a kill left; nothing if somebody else is at it."""
    import fcntl

    os.makedirs(home.path("run"), exist_ok=True)
    with open(home.path("run", "recovery.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return []
        return _recover(home)


def _recover(home: Home) -> list[Mended]:
    mended = []
    for found in store.sessions(home.db, alive=True):
        done = _mend(home, found)
        if done is not None:
            mended.append(done)
            wake(home.root, home.db, [found.parent])
    return mended


def _mend(home: Home, found: Session) -> Mended | None:
    if not is_abandoned(home, found) and is_driven(found):
        return None
    # Whoever drove it is gone, but may have finished between our reading of the row and its end: only what is written
    # after its end counts.
    session = store.session(home.db, found.id)
    if not session.is_alive:
        return None
    if is_abandoned(home, session):
        end_processes(home, session)
        take_snapshot(home, session, len(store.turns(home.db, session.id)) + 1)
        end_session(home, session.id, STOPPED, "stopped")
        return Mended(session.agent, "it was being stopped", "stopped")
    if is_driven(session):
        return None
    if session.state == BOOTING and session.step != READY:
        undo(home, session, "the command that slung it was killed")
        return Mended(session.agent, "its sling was cut off", "undone")
    if session.mode == HEADLESS:
        return _mend_headless(home, session)
    return _mend_terminal(home, session)


def _mend_headless(home: Home, session: Session) -> Mended | None:
    waits = session.state == "waiting" and not mail.waiting(home.db, session.agent)
    if waits:
        return None
    start_runner(home.root, session.id)
    return Mended(session.agent, "nobody drove it", "a runner was started")


def _mend_terminal(home: Home, session: Session) -> Mended | None:
    from rookery.terminal.tmux import Tmux

    pane = Tmux(home.tmux_socket).list().get(terminal_name(session))
    if pane is not None and not pane.dead:
        return None
    end_processes(home, session)
    take_snapshot(home, session, len(store.turns(home.db, session.id)) + 1)
    status = "its terminal is gone" if pane is None else f"exit status {pane.exit_status}"
    finished = mail.terminal_since(home.db, session.id)
    end_session(home, session.id, "completed" if finished else CRASHED, status)
    return Mended(session.agent, status, "ended")
