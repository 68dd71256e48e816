"""What happened: `rook events`, and short names for its common filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, cast

from rookery.base.clock import is_stamp, parse_duration, stamp
from rookery.base.errors import InvalidInput
from rookery.config.environ import HUMAN
from rookery.events.model import Event
from rookery.events.telemetry import LEVELS
from rookery.guard.permits import check_permitted
from rookery.mail.model import SYSTEM
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, RUNS, TASKS, Choices, Doc, Ref, declared, op
from rookery.sessions import store
from rookery.status.activity import ALL, EVENTS, LOG, TOOLS, Activity, Query, about, rows, show_rows
from rookery.status.service import find, find_run
from rookery.tasks.store import resolve

_DEFAULT_LIMIT = 50
_IN_LOGS = ("agent.ended",)

AgentOption = Annotated[str | None, Ref(AGENTS), Doc("Only this agent.")]
SinceOption = Annotated[str | None, Doc("Only what is newer, such as 10m.")]
LimitOption = Annotated[int, Doc("How many at most (100; 0 for all).")]
FollowFlag = Annotated[bool, FOLLOWS, Doc("Go on and show what happens, until interrupted.")]


@op("events", needs="events.read", view="events.row")
def events(
    ctx: Context,
    *,
    follow: Annotated[bool, FOLLOWS, Doc("Go on and show events as they happen, until interrupted.")] = False,
    since: Annotated[
        str | None, Doc("Only what is newer: a duration such as 10m, or a time such as 2026-01-31T12:00:00.000Z.")
    ] = None,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only what this agent (or `human`) did.")] = None,
    task: Annotated[str | None, Ref(TASKS), Doc("Only what happened to this task and to the agents on it.")] = None,
    run: Annotated[str | None, Ref(RUNS), Doc("Only what agents, people and Rookery did in this run.")] = None,
    type: Annotated[tuple[str, ...], Doc("Only this type, or a family of types such as `task`.")] = (),
    errors: Annotated[bool, Doc("Only what went wrong.")] = False,
    source: Annotated[
        str, Choices((EVENTS, TOOLS, ALL)), Doc("Show events, what agents said and did call by call, or both (events).")
    ] = EVENTS,
    after: Annotated[
        int | None, Doc("The number of the last event of the page before: go on after it, the oldest first.")
    ] = None,
    limit: Annotated[
        int | None, Doc(f"How many at most, the newest ones without `--after` ({_DEFAULT_LIMIT}; 0 for all).")
    ] = None,
) -> Iterator[Event | Activity]:
    """Show what has happened in the project.

    Every change of a task, learning, agent or merge is an event, committed together with the change itself.
    With `--json`, each event is an envelope on a line of its own. Their numbers grow, so that `--after` goes on where a
    page ended, and with `--follow` misses nothing.

    `rook logs`, `trace`, `errors`, `feed` and `replay` are short for `--source` with other filters.
    """
    if after is not None and after < 0:
        raise InvalidInput("the number of an event is not negative", hint="`--after 0` begins with the first")
    if after is not None and source != EVENTS:
        raise InvalidInput("`--after` takes the number of an event, and tool calls have none", hint="use --since")
    if limit is not None and limit < 0:
        raise InvalidInput("the limit is negative", hint="0 shows all")
    # Without options it shows the newest; a time, or following from a number, asks for everything from then on.
    is_open = since is not None or (follow and after is not None)
    count = limit if limit is not None else (0 if is_open else _DEFAULT_LIMIT)
    query = Query(source, () if agent is None else (agent,), types=type, errors=errors, after=after, limit=count or -1)
    if run is not None:
        query = _in_run(ctx, query, run)
    if task is not None:
        query = query.replace(subjects=_subjects(ctx, task))
    elif source == ALL:
        query = query.replace(subjects=query.actors, either=True)
    if since is not None:
        query = query.replace(since=_start(ctx, since))
    if source == EVENTS:
        return cast("Iterator[Event]", rows(ctx, query, follow=follow))
    check_permitted(ctx, declared()["logs"], {})  # it shows tool calls, too, and needs another permission
    return show_rows(ctx, query, follow=follow)


@op("logs", needs="agent.read", view="events.row")
def logs(
    ctx: Context,
    name: Annotated[str | None, Ref(AGENTS), Doc("The agent; without one, all.")] = None,
    *,
    level: Annotated[
        str | None, Choices(tuple(LEVELS)), Doc("Only what is at least this important (debug: everything).")
    ] = None,
    follow: Annotated[
        bool, FOLLOWS, Doc("Go on and show what happens, until the agent has ended; without one, until interrupted.")
    ] = False,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[Activity]:
    """Show what agents said and did, call by call, and how they ended.

    With `--level error` you see failed calls and errors; `warn` adds calls that were denied, limits and notes; `info`
    adds what agents said, did and changed; `debug` adds usage, and calls that have only begun.
    """
    query = _about_agent(ctx, name).replace(source=LOG, types=_IN_LOGS, level=level)

    def is_over() -> bool:
        return name is not None and not find(ctx.db, name).is_alive

    return _show(ctx, query, since, limit, follow, is_over)


@op("trace", needs="agent.read", view="events.row")
def trace(
    ctx: Context,
    subject: Annotated[str, Doc("An agent, or a task.")],
    *,
    follow: FollowFlag = False,
    since: SinceOption = None,
    limit: LimitOption = 100,
) -> Iterator[Activity]:
    """Show everything that happened to an agent or a task, in order."""
    is_agent = store.latest(ctx.db, subject) is not None
    query = about(subject) if is_agent else Query(subjects=_subjects(ctx, store.task_named(ctx.db, subject)))
    return _show(ctx, query, since, limit, follow)


@op("errors", needs="agent.read", view="events.row")
def errors(
    ctx: Context, *, agent: AgentOption = None, since: SinceOption = None, limit: LimitOption = 100
) -> Iterator[Activity]:
    """Show what went wrong."""
    return _show(ctx, _about_agent(ctx, agent).replace(errors=True), since, limit)


@op("feed", needs="agent.read", long=True, follows=True, view="events.row")
def feed(
    ctx: Context, *, agent: AgentOption = None, since: SinceOption = None, limit: LimitOption = 100
) -> Iterator[Activity]:
    """Show what all agents do, live, until interrupted."""
    return _show(ctx, _about_agent(ctx, agent), since, limit, follow=True)


@op("replay", needs="agent.read", long=True, view="events.row")
def replay(
    ctx: Context,
    *,
    run: Annotated[str | None, Ref(RUNS), Doc("Only this run; by default the newest under way.")] = None,
    agent: Annotated[tuple[str, ...], Ref(AGENTS), Doc("Only this agent.")] = (),
    since: SinceOption = None,
    limit: Annotated[int, Doc("How many at most (0, for all).")] = 0,
) -> Iterator[Activity]:
    """Show a run again from its beginning, all its agents interleaved."""
    query = _in_run(ctx, about(*agent), run)
    return _show(ctx, query.replace(subjects=query.actors), since, limit)


def _show(
    ctx: Context,
    query: Query,
    since: str | None,
    limit: int,
    follow: bool = False,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Activity]:
    if since is not None:
        query = query.replace(since=_start(ctx, since))
    return show_rows(ctx, query.replace(limit=limit or -1), follow=follow, is_over=is_over)


def _about_agent(ctx: Context, name: str | None) -> Query:
    return about() if name is None else about(find(ctx.db, name).agent)


def _subjects(ctx: Context, task: str) -> tuple[str, ...]:
    """A task, and the agents that were slung on it."""
    task_id = resolve(ctx.db, task)
    return (task_id, *(session.agent for session in store.sessions(ctx.db, task_id=task_id)))


def _in_run(ctx: Context, query: Query, run: str | None) -> Query:
    """Only since the run began and, where no agents are named, by those that took part in it."""
    if run is None and store.newest_run(ctx.db) is None:
        return query.replace(actors=query.actors or (HUMAN, SYSTEM))
    chosen = find_run(ctx.db, run)
    names = (session.agent for session in store.sessions(ctx.db, run_id=chosen.id))
    return query.replace(actors=query.actors or (*names, HUMAN, SYSTEM), since=chosen.created_at)


def _start(ctx: Context, since: str) -> str:
    if is_stamp(since):
        return since
    try:
        return stamp(ctx.clock() - parse_duration(since))
    except InvalidInput as error:
        raise InvalidInput(
            f"{since!r} is neither a duration nor a time", hint="write 10m, 2h or 2026-01-31T12:00:00.000Z"
        ) from error
