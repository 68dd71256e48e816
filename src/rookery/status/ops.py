"""What we offer for looking at agents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, NOTHING, PROCESS, ROLES, Choices, Doc, Ref, op
from rookery.processes.spawning import become
from rookery.roles.catalog import find_role, list_roles
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.model import STATES, Session
from rookery.status import service
from rookery.status.activity import Activity, about, show_rows, show_session
from rookery.status.event_ops import LimitOption
from rookery.status.screens import read_screen
from rookery.status.service import Identity, Inspection
from rookery.terminal.tmux import Tmux


@dataclass(frozen=True, slots=True)
class Attached(Record):
    """The command that goes into an agent's terminal."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleSummary(Record):
    """A role, what it may do, and which agents have it."""

    PRINTS = "role"
    role: str
    aliases: tuple[str, ...]
    purpose: str
    profile: str
    writes: str
    spawns: tuple[str, ...]
    alive: tuple[str, ...]


NameArg = Annotated[str, Ref(AGENTS), Doc("The agent.")]


@op("inspect", needs="agent.read", view="agents.inspection")
def inspect(
    ctx: Context,
    name: NameArg,
    *,
    session: Annotated[
        str | None, Doc("An earlier session of that name instead of its last; `rook agents show NAME` lists them.")
    ] = None,
    all_sessions: Annotated[bool, Doc("Show what happened in all sessions of that name, not in one alone.")] = False,
    follow: Annotated[bool, FOLLOWS, Doc("Go on and show what happens, until the session ends.")] = False,
    limit: LimitOption = 100,
) -> Iterator[Inspection | Activity]:
    """Show one agent at length: its task, turns, tool calls, and its screen; its last one if it has ended."""
    if session is not None and all_sessions:
        raise InvalidInput("say either --session or --all-sessions", hint="--all-sessions has that session too")
    inspected = service.find_session(ctx.db, name, session)
    (status,) = service.describe(ctx, [inspected])
    children = tuple(child.agent for child in store.sessions(ctx.db, alive=True, parent=name))
    turns = tuple(store.turns(ctx.db, inspected.id))
    yield Inspection(status, inspected, turns, children, read_screen(ctx, inspected))
    if all_sessions:
        yield from show_rows(ctx, about(name).replace(limit=limit or -1), follow=follow)
    else:
        yield from show_session(ctx, inspected, limit=limit or -1, follow=follow)


@op("attach", needs="terminal.write", long=True, touches=PROCESS, owns=NOTHING, view="agents.attach")
def attach(ctx: Context, name: NameArg) -> Attached:
    """Open an interactive agent's terminal; C-b d leaves it."""
    session = service.find(ctx.db, name)
    if session.mode != TMUX or not session.is_alive:
        raise InvalidState(_why_no_terminal(session), hint=_instead_of_terminal(session))
    command = Tmux(ctx.tmux_socket).attach_command(session.terminal)
    if ctx.is_interactive:
        ctx.close()
        become(command)
    return Attached(tuple(command))


@op("agents discover", needs="agent.read", view="agents.discovered")
def discover(
    ctx: Context,
    *,
    role: Annotated[str | None, Ref(ROLES), Doc("Only this role.")] = None,
    state: Annotated[str | None, Choices(STATES[:-1]), Doc("Only agents in this state.")] = None,
    parent: Annotated[str | None, Ref(AGENTS), Doc("Only agents that answer to this one, or to `human`.")] = None,
) -> list[RoleSummary]:
    """List roles, what they may do, and which of their agents are alive.

    With --state or --parent, only roles that have such agents are shown.
    """
    living = [
        session
        for session in store.sessions(ctx.db, alive=True, parent=parent)
        if state is None or session.state == state
    ]
    is_filtered = state is not None or parent is not None
    return [
        RoleSummary(
            *(known.name, known.aliases, known.purpose, known.profile, known.writes, known.slings),
            alive=tuple(session.agent for session in living if session.role == known.name),
        )
        for known in (list_roles(ctx.root) if role is None else [find_role(ctx.root, role)])
        if not is_filtered or any(session.role == known.name for session in living)
    ]


@op("agents show", needs="agent.read", view="agents.identity")
def show(ctx: Context, name: NameArg) -> Identity:
    """Show the history of an agent, over all its sessions."""
    return service.identity(ctx, name)


def _why_no_terminal(session: Session) -> str:
    if session.mode != TMUX:
        return f"{session.agent} has no terminal: it runs headless, turn by turn"
    return f"{session.agent} has ended, and its terminal is closed"


def _instead_of_terminal(session: Session) -> str:
    if session.is_alive:
        return f"`rook inspect {session.agent} --follow` shows what it does"
    shown = "its last screen" if session.mode == TMUX else "its turns"
    return f"`rook inspect {session.agent}` shows {shown}, `rook logs {session.agent}` what it did"
