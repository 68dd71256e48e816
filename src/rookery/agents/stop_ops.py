"""The operation that stops agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.base.text import plural
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, PROCESS, Doc, Owns, op
from rookery.sessions import store
from rookery.sessions.model import NoSuchAgent, Session
from rookery.turns.stop import stop as stop_agent
from rookery.worktrees.cleaning import Cleaner


@dataclass(frozen=True, slots=True)
class Stopped(Record):
    """The agents that were stopped, or are about to be, and the worktrees that were removed."""

    PRINTS = "ended"
    ended: tuple[Session, ...]
    cleaned: tuple[str, ...] = ()
    ended_before: tuple[str, ...] = ()
    """Those agents among them that had ended already."""


@op("stop", needs="agent.write", long=True, touches=PROCESS, view="agents.stopped")
def stop(
    ctx: Context,
    name: Annotated[tuple[str, ...], Owns(AGENTS), Doc("The agents.")] = (),
    *,
    all: Annotated[bool, Doc("Every agent that is alive; for an agent, those below it. On a terminal, asks.")] = False,
    yes: Annotated[bool, Doc("With --all: do not ask.")] = False,
    clean: Annotated[bool, Doc("Also remove their worktrees; uncommitted work is saved first.")] = False,
    reason: Annotated[str | None, Doc("Why.")] = None,
) -> Stopped:
    """Stop agents with their whole process trees, and every agent below them. Their work is kept."""
    if all == bool(name):
        raise InvalidInput("name the agents, or say --all", hint="`rook status` shows who is alive")
    caller = ctx.caller.name
    chosen = _find_all(ctx) if all else [_find(ctx, agent) for agent in dict.fromkeys(name)]
    if all and not yes:
        if not ctx.is_interactive:
            raise InvalidInput(
                f"{plural(len(chosen), 'agent')} would be stopped, and there is no terminal to ask on",
                hint="`rook stop --all --yes` does it without asking",
            )
        if chosen and not ctx.confirm(Stopped(tuple(chosen)), f"Stop {plural(len(chosen), 'agent')}?"):
            return Stopped(())
    ended: dict[str, Session] = {}
    for session in chosen:
        for one in stop_agent(ctx, session.agent, reason or f"stopped by {caller}", by=caller):
            ended.setdefault(one.id, one)
    names = [session.agent for session in ended.values()]
    cleaned = Cleaner(ctx, actor=caller).clean(names) if clean and names else []
    before = tuple(session.agent for session in chosen if not session.is_alive)
    return Stopped(tuple(ended.values()), tuple(worktree.path for worktree in cleaned), before)


def _find(ctx: Context, name: str) -> Session:
    """The agent's last session; one that is unknown refuses the call before any agent is stopped."""
    session = store.latest(ctx.db, name)
    if session is None:
        raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` lists all agents, also those that have ended")
    return session


def _find_all(ctx: Context) -> list[Session]:
    """Every agent that is alive, or those below the agent that asks."""
    living = store.sessions(ctx.db, alive=True)
    if ctx.caller.is_human:
        return living
    return [session for session in living if ctx.caller.name in store.leaders(ctx.db, session.agent)]
