"""The operations by which a person pauses an agent, works in its place, and lets it go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.agents import hold
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, LONG_TEXT, PROCESS, Doc, Owns, op
from rookery.processes.spawning import become
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.model import Hold, Session
from rookery.terminal.tmux import Tmux

OwnAgentArg = Annotated[str, Owns(AGENTS), Doc("The agent.")]


@dataclass(frozen=True, slots=True)
class Held(Record):
    """An agent that was paused or taken over, or that goes on."""

    PRINTS = "agent"
    agent: str
    hold: Hold | None
    """None if it goes on."""
    worktree: str
    branch: str
    turn: int | None = None
    """The number of the turn that is still running."""
    command: tuple[str, ...] = ()
    """The command that goes into its terminal, if it has one."""
    commits: tuple[str, ...] = ()
    """The commits that were made while it was taken over."""
    files: tuple[str, ...] = ()
    """The files that changed while it was taken over."""


@op("pause", needs="agent.write", long=True, touches=PROCESS, view="agents.held")
def pause(
    ctx: Context,
    name: OwnAgentArg,
    *,
    now: Annotated[bool, Doc("Also interrupt the turn that is running.")] = False,
) -> Held:
    """Pause an agent: no turn of it begins, and mail waits, until `rook handback`.

    A turn that is running goes on to its end, unless `--now` interrupts it.
    """
    return _held(ctx, hold.pause(ctx, name, now=now))


@op("takeover", needs="agent.write", long=True, touches=PROCESS, view="agents.held")
def takeover(ctx: Context, name: OwnAgentArg) -> Held:
    """Work in an agent's worktree yourself: its turn is interrupted, and it is paused until `rook handback`.

    Rookery leaves the worktree alone meanwhile. An agent in tmux is not interrupted: you get into its terminal.
    """
    session = hold.take_over(ctx, name)
    held = _held(ctx, session)
    if held.command and ctx.is_interactive:
        ctx.close()
        become(held.command)
    return held


@op("handback", needs="agent.write", long=True, touches=PROCESS, view="agents.held")
def handback(
    ctx: Context,
    name: OwnAgentArg,
    message: Annotated[str | None, LONG_TEXT, Doc("What the agent should know.")] = None,
) -> Held:
    """Let an agent that was paused or taken over go on, with the conversation that it had.

    It gets a message that names the commits and files that changed meanwhile. What you have not committed stays in the
    worktree for it.
    """
    session, commits, files = hold.hand_back(ctx, name, message or "")
    return _held(ctx, session).replace(commits=commits, files=files, command=())


def _held(ctx: Context, session: Session) -> Held:
    turn = store.running_turn(ctx.db, session.id)
    command: tuple[str, ...] = ()
    if session.mode == TMUX:
        command = tuple(Tmux(ctx.tmux_socket).attach_command(session.terminal))
    number = None if turn is None else turn.number
    return Held(session.agent, session.hold, session.worktree, session.branch, number, command)
