"""What we offer for looking at agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rookery.base.clock import parse_duration, stamp
from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.ops.operation import INTEGER, arg, flag, op, option, options
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

_NAME = arg("name", "The agent.")
_SINCE = option("since", "Only what is newer, such as 10m.")
_LIMIT = option("limit", "How many at most (100; 0 for all).", kind=INTEGER, default=100)
_LOOK_AGAIN = 0.3
_FOLLOW = flag("follow", "Go on and show what happens, until interrupted.")


@op(
    "status",
    flag("all", "Also those that have ended."),
    flag("watch", "Show it anew whenever something changes, until interrupted."),
    needs="agent.read",
    view="agents.status",
    streams=True,
)
def status(ctx: Context, all: bool, watch: bool) -> Iterator[list[look.AgentStatus]]:
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


@op("inspect", _NAME, _FOLLOW, _LIMIT, needs="agent.read", view="agents.inspection", streams=True)
def inspect(ctx: Context, name: str, follow: bool, limit: int) -> Iterator[object]:
    """Show one agent at length: its task, turns, doings, and its screen if it has one."""
    session = look.find(ctx.db, name)
    wanted = moments.Filter(agents=(name,))
    found = look.status(ctx, everybody=True)
    status_of = next(each for each in found if each.agent == name)
    children = tuple(child.agent for child in store.children(ctx.db, name))
    turns = tuple(store.turns(ctx.db, session.id))
    yield look.Inspection(status_of, session, turns, children, _screen(ctx, session))
    yield from moments.follow(ctx, wanted, limit) if follow else moments.read(ctx, wanted, limit)


@op("attach", _NAME, needs="terminal.write", owns={}, view="agents.attach")
def attach(ctx: Context, name: str) -> dict[str, object]:
    """Go into an interactive agent's terminal; C-b d leaves it."""
    session = look.find(ctx.db, name)
    if session.mode != TMUX or not session.is_alive:
        raise InvalidState(f"{name} has no terminal", hint=f"`rook inspect {name} --follow` shows what it does")
    command = Tmux(ctx.tmux_socket).attach_command(session.terminal)
    if ctx.is_interactive:
        ctx.close()
        become(command)
    return {"command": list(command)}


@op(
    "logs",
    arg("name", "The agent; without one, all.", required=False),
    _FOLLOW,
    _SINCE,
    _LIMIT,
    needs="agent.read",
    view="agents.moment",
    streams=True,
)
def logs(ctx: Context, name: str | None, follow: bool, since: str | None, limit: int) -> Iterator[moments.Moment]:
    """Show what agents said and did, call by call."""
    names = () if name is None else (look.find(ctx.db, name).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since), doings_only=True), follow, limit)


@op(
    "trace",
    arg("subject", "An agent, or a task."),
    _FOLLOW,
    _SINCE,
    _LIMIT,
    needs="agent.read",
    view="agents.moment",
    streams=True,
)
def trace(ctx: Context, subject: str, follow: bool, since: str | None, limit: int) -> Iterator[moments.Moment]:
    """Show everything that happened to an agent or a task, in order."""
    if store.latest(ctx.db, subject) is not None:
        wanted = moments.Filter(agents=(subject,), since=_start(ctx, since))
    else:
        task_id = resolve(ctx.db, subject)
        wanted = moments.Filter(subjects=(task_id, *_agents_of(ctx, task_id)), since=_start(ctx, since))
    return _moments(ctx, wanted, follow, limit)


@op(
    "errors",
    option("agent", "Only this agent."),
    _SINCE,
    _LIMIT,
    needs="agent.read",
    view="agents.moment",
    streams=True,
)
def errors(ctx: Context, agent: str | None, since: str | None, limit: int) -> Iterator[moments.Moment]:
    """Show what went wrong."""
    names = () if agent is None else (look.find(ctx.db, agent).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since), errors=True), False, limit)


@op("feed", option("agent", "Only this agent."), _SINCE, _LIMIT, needs="agent.read", view="agents.moment", streams=True)
def feed(ctx: Context, agent: str | None, since: str | None, limit: int) -> Iterator[moments.Moment]:
    """Show what everybody does, live, until interrupted."""
    names = () if agent is None else (look.find(ctx.db, agent).agent,)
    return _moments(ctx, moments.Filter(agents=names, since=_start(ctx, since)), True, limit)


@op(
    "replay",
    option("run", "Only this run; by default the newest."),
    options("agent", "Only this agent."),
    _SINCE,
    option("limit", "How many at most (0, for all).", kind=INTEGER, default=0),
    needs="agent.read",
    view="agents.moment",
    streams=True,
)
def replay(
    ctx: Context, run: str | None, agent: tuple[str, ...], since: str | None, limit: int
) -> Iterator[moments.Moment]:
    """Tell a run again from its beginning, everybody interleaved."""
    known = store.runs(ctx.db)
    chosen = [each for each in known if run is None or each.id.startswith(run)][:1]
    names = tuple(each.agent for each in store.sessions(ctx.db, run_id=chosen[0].id)) if chosen else ()
    start = _start(ctx, since) or (chosen[0].created_at if chosen else None)
    return _moments(ctx, moments.Filter(agents=tuple(agent) or (*names, "human", "rook"), since=start), False, limit)


@op(
    "metrics",
    option("last", "How many lives (20; 0 for all).", kind=INTEGER, default=20),
    needs="agent.read",
    view="agents.metrics",
)
def metrics(ctx: Context, last: int) -> list[look.Metric]:
    """Show agents' lives in numbers, the newest first."""
    return look.metrics(ctx.db, last)


@op(
    "agents discover",
    option("role", "Only this role."),
    needs="agent.read",
    view="agents.discovered",
)
def discover(ctx: Context, role: str | None) -> list[dict[str, object]]:
    """Show which roles there are, what they may do, and who of them is alive."""
    alive = look.status(ctx)
    roles = list_roles(ctx.root) if role is None else [find_role(ctx.root, role)]
    return [
        {
            "role": each.name,
            "aliases": list(each.aliases),
            "purpose": each.purpose,
            "profile": each.profile,
            "writes": each.writes,
            "spawns": list(each.slings),
            "alive": [one.agent for one in alive if one.role == each.name],
        }
        for each in roles
    ]


@op("agents show", _NAME, needs="agent.read", view="agents.identity")
def show(ctx: Context, name: str) -> look.Identity:
    """Show what an agent has been and done, over all its lives."""
    return look.identity(ctx, name)


def _moments(ctx: Context, wanted: moments.Filter, follow: bool, limit: int) -> Iterator[moments.Moment]:
    return moments.follow(ctx, wanted, limit or 100) if follow else iter(moments.read(ctx, wanted, limit))


def _start(ctx: Context, since: str | None) -> str | None:
    return None if since is None else stamp(ctx.clock() - parse_duration(since))


def _agents_of(ctx: Context, task_id: str) -> list[str]:
    return [row[0] for row in ctx.db.all("SELECT agent FROM sessions WHERE task_id = ?", (task_id,))]


def _screen(ctx: Context, session: Session) -> str | None:
    if session.mode != TMUX or not session.is_alive:
        return None
    tmux = Tmux(ctx.tmux_socket)
    name = session.terminal
    return tmux.capture(name) if tmux.has(name) else None
