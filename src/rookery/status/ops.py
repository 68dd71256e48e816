"""What we offer for looking at agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from rookery.base.clock import parse_duration, stamp
from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, NOTHING, PROCESS, ROLES, RUNS, Doc, Ref, op
from rookery.processes.detach import become
from rookery.roles.catalog import find_role, list_roles
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.status import feed as moments
from rookery.status import service as look
from rookery.status.panes import Lookout
from rookery.tasks.store import resolve
from rookery.terminal.tmux import Tmux


@dataclass(frozen=True, slots=True)
class Attached(Record):
    """The command that goes into an agent's terminal."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleSummary(Record):
    """A role, what it may do, and which agents have it."""

    role: str
    aliases: tuple[str, ...]
    purpose: str
    profile: str
    writes: str
    spawns: tuple[str, ...]
    alive: tuple[str, ...]


NameArg = Annotated[str, Ref(AGENTS), Doc("The agent.")]
SinceOption = Annotated[str | None, Doc("Only what is newer, such as 10m.")]
LimitOption = Annotated[int, Doc("How many at most (100; 0 for all).")]
FollowFlag = Annotated[bool, FOLLOWS, Doc("Go on and show what happens, until interrupted.")]


@op("status", needs="agent.read", view="agents.status")
def status(
    ctx: Context,
    *,
    all: Annotated[bool, Doc("Also those that have ended.")] = False,
    watch: Annotated[bool, FOLLOWS, Doc("Show it again whenever something changes, until interrupted.")] = False,
) -> Iterator[list[look.AgentStatus]]:
    """Show who does what."""
    return _watch(ctx, all, ctx.react) if watch else iter([look.status(ctx, everybody=all)])


def _watch(ctx: Context, everybody: bool, react: Callable[[], None]) -> Iterator[list[look.AgentStatus]]:
    seen = None
    with Lookout(ctx, react) as lookout:
        while True:
            found = look.status(ctx, everybody=everybody, screens=lookout.screens())
            if found != seen:
                yield found
            seen = found
            lookout.wait()


@op("inspect", needs="agent.read", view="agents.inspection")
def inspect(
    ctx: Context, name: NameArg, *, follow: FollowFlag = False, limit: LimitOption = 100
) -> Iterator[look.Inspection | moments.Moment]:
    """Show one agent at length: its task, turns, doings, and its screen if it has one."""
    session = look.find(ctx.db, name)
    wanted = moments.Filter(agents=(name,))
    found = look.status(ctx, everybody=True)
    status_of = next(each for each in found if each.agent == name)
    children = tuple(child.agent for child in store.sessions(ctx.db, alive=True, parent=name))
    turns = tuple(store.turns(ctx.db, session.id))
    yield look.Inspection(status_of, session, turns, children, _screen(ctx, session))
    yield from moments.follow(ctx, wanted, limit) if follow else moments.read(ctx, wanted, limit)


@op("attach", needs="terminal.write", long=True, touches=PROCESS, owns=NOTHING, view="agents.attach")
def attach(ctx: Context, name: NameArg) -> Attached:
    """Go into an interactive agent's terminal; C-b d leaves it."""
    session = look.find(ctx.db, name)
    if session.mode != TMUX or not session.is_alive:
        raise InvalidState(f"{name} has no terminal", hint=f"`rook inspect {name} --follow` shows what it does")
    command = Tmux(ctx.tmux_socket).attach_command(session.terminal)
    if ctx.is_interactive:
        ctx.close()
        become(command)
    return Attached(tuple(command))


@op("logs", needs="agent.read", view="agents.moment")
def logs(
    ctx: Context,
    name: Annotated[str | None, Ref(AGENTS), Doc("The agent; without one, all.")] = None,
    *,
    follow: FollowFlag = False,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[moments.Moment]:
    """Show what agents said and did, call by call."""
    names = () if name is None else (look.find(ctx.db, name).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since), doings_only=True), follow, limit)


@op("trace", needs="agent.read", view="agents.moment")
def trace(
    ctx: Context,
    subject: Annotated[str, Doc("An agent, or a task.")],
    *,
    follow: FollowFlag = False,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[moments.Moment]:
    """Show everything that happened to an agent or a task, in order."""
    if store.latest(ctx.db, subject) is not None:
        wanted = moments.Filter(agents=(subject,), since=_start(ctx, since))
    else:
        task_id = resolve(ctx.db, subject)
        wanted = moments.Filter(subjects=(task_id, *_agents_of(ctx, task_id)), since=_start(ctx, since))
    return _moments(ctx, wanted, follow, limit)


@op("errors", needs="agent.read", view="agents.moment")
def errors(
    ctx: Context,
    *,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only this agent.")] = None,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[moments.Moment]:
    """Show what went wrong."""
    names = () if agent is None else (look.find(ctx.db, agent).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since), errors=True), False, limit)


@op("feed", needs="agent.read", long=True, follows=True, view="agents.moment")
def feed(
    ctx: Context,
    *,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only this agent.")] = None,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[moments.Moment]:
    """Show what everybody does, live, until interrupted."""
    names = () if agent is None else (look.find(ctx.db, agent).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since)), True, limit)


@op("replay", needs="agent.read", long=True, view="agents.moment")
def replay(
    ctx: Context,
    *,
    run: Annotated[str | None, Ref(RUNS), Doc("Only this run; by default the newest.")] = None,
    agent: Annotated[tuple[str, ...], Ref(AGENTS), Doc("Only this agent.")] = (),
    since: SinceOption = None,
    limit: Annotated[int, Doc("How many at most (0, for all).")] = 0,
) -> Iterator[moments.Moment]:
    """Tell a run again from its beginning, everybody interleaved."""
    known = store.runs(ctx.db)
    chosen = [each for each in known if run is None or each.id.startswith(run)][:1]
    names = tuple(each.agent for each in store.sessions(ctx.db, run_id=chosen[0].id)) if chosen else ()
    start = _start(ctx, since) or (chosen[0].created_at if chosen else None)
    return _moments(ctx, moments.Filter(agents=tuple(agent) or (*names, "human", "rook"), since=start), False, limit)


@op("metrics", needs="agent.read", view="agents.metrics")
def metrics(ctx: Context, *, last: Annotated[int, Doc("How many lives (20; 0 for all).")] = 20) -> list[look.Metric]:
    """Show agents' lives in numbers, the newest first."""
    return look.metrics(ctx.db, last)


@op("agents discover", needs="agent.read", view="agents.discovered")
def discover(
    ctx: Context, *, role: Annotated[str | None, Ref(ROLES), Doc("Only this role.")] = None
) -> list[RoleSummary]:
    """Show which roles there are, what they may do, and who of them is alive."""
    alive = look.status(ctx)
    roles = list_roles(ctx.root) if role is None else [find_role(ctx.root, role)]
    return [
        RoleSummary(
            each.name,
            each.aliases,
            each.purpose,
            each.profile,
            each.writes,
            each.slings,
            tuple(one.agent for one in alive if one.role == each.name),
        )
        for each in roles
    ]


@op("agents show", needs="agent.read", view="agents.identity")
def show(ctx: Context, name: NameArg) -> look.Identity:
    """Show what an agent has been and done, over all its lives."""
    return look.identity(ctx, name)


def _moments(ctx: Context, wanted: moments.Filter, follow: bool, limit: int) -> Iterator[moments.Moment]:
    return moments.follow(ctx, wanted, limit or 100) if follow else iter(moments.read(ctx, wanted, limit))


def _start(ctx: Context, since: str | None) -> str | None:
    return None if since is None else stamp(ctx.clock() - parse_duration(since))


def _agents_of(ctx: Context, task_id: str) -> list[str]:
    return [each.agent for each in store.sessions(ctx.db, task_id=task_id)]


def _screen(ctx: Context, session: Session) -> str | None:
    if session.mode != TMUX or not session.is_alive:
        return None
    tmux = Tmux(ctx.tmux_socket)
    name = session.terminal
    return tmux.capture(name) if tmux.has(name) else None
