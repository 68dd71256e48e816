"""What we offer for looking at agents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, NOTHING, PROCESS, ROLES, Doc, Ref, op
from rookery.processes.spawning import become
from rookery.roles.catalog import find_role, list_roles
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.status import service
from rookery.status.activity import Activity, about, show_rows
from rookery.status.event_ops import FollowFlag, LimitOption
from rookery.status.service import Identity, Inspection, Metric
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
    ctx: Context, name: NameArg, *, follow: FollowFlag = False, limit: LimitOption = 100
) -> Iterator[Inspection | Activity]:
    """Show one agent at length: its task, turns, tool calls, and its screen if it has one."""
    session = service.find(ctx.db, name)
    [status] = service.status(ctx, ended=True, agent=name)
    children = tuple(child.agent for child in store.sessions(ctx.db, alive=True, parent=name))
    turns = tuple(store.turns(ctx.db, session.id))
    yield Inspection(status, session, turns, children, _screen(ctx, session))
    yield from show_rows(ctx, about(name).replace(limit=limit or -1), follow=follow)


@op("attach", needs="terminal.write", long=True, touches=PROCESS, owns=NOTHING, view="agents.attach")
def attach(ctx: Context, name: NameArg) -> Attached:
    """Go into an interactive agent's terminal; C-b d leaves it."""
    session = service.find(ctx.db, name)
    if session.mode != TMUX or not session.is_alive:
        raise InvalidState(f"{name} has no terminal", hint=f"`rook inspect {name} --follow` shows what it does")
    command = Tmux(ctx.tmux_socket).attach_command(session.terminal)
    if ctx.is_interactive:
        ctx.close()
        become(command)
    return Attached(tuple(command))


@op("metrics", needs="agent.read", view="agents.metrics")
def metrics(ctx: Context, *, last: Annotated[int, Doc("How many sessions (20; 0 for all).")] = 20) -> list[Metric]:
    """Show agents' sessions in numbers, the newest first."""
    return service.metrics(ctx.db, last)


@op("agents discover", needs="agent.read", view="agents.discovered")
def discover(
    ctx: Context, *, role: Annotated[str | None, Ref(ROLES), Doc("Only this role.")] = None
) -> list[RoleSummary]:
    """Show which roles there are, what they may do, and which of their agents are alive."""
    living = store.sessions(ctx.db, alive=True)
    return [
        RoleSummary(
            *(known.name, known.aliases, known.purpose, known.profile, known.writes, known.slings),
            alive=tuple(session.agent for session in living if session.role == known.name),
        )
        for known in (list_roles(ctx.root) if role is None else [find_role(ctx.root, role)])
    ]


@op("agents show", needs="agent.read", view="agents.identity")
def show(ctx: Context, name: NameArg) -> Identity:
    """Show what an agent has been and done, over all its sessions."""
    return service.identity(ctx, name)


def _screen(ctx: Context, session: Session) -> str | None:
    if session.mode != TMUX or not session.is_alive:
        return None
    tmux = Tmux(ctx.tmux_socket)
    name = session.terminal
    return tmux.capture(name) if tmux.has(name) else None
