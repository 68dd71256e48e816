"""Stopping agents: first those below, with all their processes; their work is kept, and their parents get a message."""

from __future__ import annotations

import time
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.clock import has_passed, seconds_of
from rookery.base.errors import InvalidState
from rookery.config import steps
from rookery.costs import store as costs
from rookery.mail.last_word import last_word
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import MARK, RUNNER
from rookery.processes.proctree import end_tree, marked
from rookery.runtimes.model import TMUX
from rookery.sandbox.model import clear_sockets, socket_folder
from rookery.sessions import journal, store
from rookery.sessions.model import COMPLETED, RESERVED, STOPPED, STOPPING, NoSuchAgent, Session, Turn
from rookery.status.screens import keep_screen
from rookery.terminal.tmux import Tmux
from rookery.turns.settlement import end_session, read_usage, take_snapshot
from rookery.vcs.git.locks import of_worktree, remove_dead
from rookery.worktrees import service as worktrees
from rookery.worktrees.removal import alone

_PATIENCE = 10.0
_PAUSE = 0.02
LEASE = 600.0
"""How long, in seconds, a stop may take whose process cannot be seen from here. It can be repeated."""


def stop(ctx: Context, name: str, reason: str, *, by: str) -> list[Session]:
    """Stop an agent and every agent below it; safe to repeat after a kill."""
    session = store.latest(ctx.db, name)
    if session is None:
        raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` lists all agents, also those that have ended")
    if not session.is_alive:
        return [session]
    ended = _stop_below(ctx, name, by)
    session = _announce(ctx, session, by)
    steps.reached("stop announced")
    ended += _stop_below(ctx, name, by)  # what it slung meanwhile; from now on it slings none
    return [*ended, _end(ctx, session, reason, tell_parent=by != session.parent)]


def _stop_below(ctx: Context, name: str, by: str) -> list[Session]:
    """Stop the agents that answer to one, and those below them."""
    ended: list[Session] = []
    for child in store.sessions(ctx.db, alive=True, parent=name):
        ended += stop(ctx, child.agent, f"{name} was stopped", by=by)
    return ended


def finish(ctx: Context, session_id: str) -> None:
    """Finish a `rook stop` that was killed; safe to repeat."""
    session = store.session(ctx.db, session_id)
    if session.is_alive and is_abandoned(ctx, session):
        _stop_below(ctx, session.agent, session.agent)
        _end(ctx, session, "stopped")


def _end(ctx: Context, session: Session, reason: str, *, tell_parent: bool = True) -> Session:
    end_processes(ctx, session)
    steps.reached("stop killed")
    _discard_unfinished(ctx, session)
    take_snapshot(ctx, session)
    steps.reached("stop snapshotted")
    if last_word(ctx.db, session) is not None:  # only its turn had not ended: what it has handed in stays so
        return end_session(ctx, session.id, COMPLETED, reason, tell_parent=tell_parent)
    return end_session(ctx, session.id, STOPPED, reason, tell_parent=tell_parent)


def _discard_unfinished(ctx: Context, session: Session) -> None:
    """Remove the half of a worktree that a killed sling left; a sling that is still alive does so itself."""
    slinger = None if session.runner_pid is None else holders.read(session.runner_pid, session.runner_start)
    if session.step == RESERVED and (slinger is None or holders.is_gone(slinger)):
        with alone(ctx.root), suppress(InvalidState):  # with files of a person's in it, it stays
            worktrees.discard_unfinished(ctx, session)
            steps.reached("stop discarded")


def sweep(ctx: Context, session_id: str) -> None:
    """End what an agent that has ended in its terminal left running; safe to repeat."""
    session = store.session(ctx.db, session_id)
    if session.is_alive or session.swept_at is not None:
        return
    end_processes(ctx, session)
    usage = read_usage(ctx, session, session.id)
    steps.reached("rest counted")
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if session.swept_at is not None:
            return
        turns = store.turns(db, session_id)
        if turns:
            costs.add_usage(db, turns[-1].id, usage)
        store.change_session(db, session, swept_at=ctx.now())


def end_processes(ctx: Context, session: Session) -> None:
    """End the runner, the agent's program and all that it started, and remove what these have locked.

    What its terminal shows is kept first.
    """
    keep_screen(ctx, session)
    turn = store.running_turn(ctx.db, session.id)
    if turn is not None:
        _end_runner(ctx, session, turn)  # first, so that it does not take the killed child for a crash
    end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
    if session.mode == TMUX:
        Tmux(ctx.tmux_socket).kill(session.terminal)
        end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
    remove_dead(of_worktree(ctx.root, session.worktree))  # of the gits that were ended
    clear_sockets(socket_folder(session.id))  # the host of its sandbox was killed before it could


def _end_runner(ctx: Context, session: Session, turn: Turn) -> None:
    """End the turn's runner, also one that is only being started; nothing if it is on another host."""
    deadline = time.monotonic() + _PATIENCE
    while journal.is_running(ctx.root, turn.id) and time.monotonic() < deadline:
        runner = journal.find_runner(ctx.root, turn.id)
        for process in [runner] if runner is not None else marked(RUNNER, session.id):
            end_tree(process, None, 0)
        calls.sleep(_PAUSE)


def read_stopper(reason: str | None) -> HolderId | None:
    """The process that stops the agent, or died while it did; None if none does. `reason` is of its session."""
    if reason is None or not reason.startswith(STOPPING + " "):
        return None
    _, pid, start = reason.split(" ", 2)
    return holders.read(int(pid), start)


def is_abandoned(ctx: Context, session: Session) -> bool:
    """True if the process that stopped the agent is dead, or cannot be seen from here and takes very long."""
    stopper = read_stopper(session.reason)
    is_over = has_passed(LEASE, seconds_of(session.updated_at), ctx.clock())
    return stopper is not None and holders.is_gone(stopper, lease_is_over=is_over)


def _announce(ctx: Context, session: Session, by: str) -> Session:
    """Write that the agent is being stopped, and by which process: after a kill, the loop finishes it.

    No turn begins after this.
    """
    me = holders.myself()
    reason = f"{STOPPING} {me.pid} {me.text}"
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        if session.is_alive:
            session = store.change_session(db, session, "agent.stopping", actor=by, at=ctx.now(), reason=reason)
    return session
