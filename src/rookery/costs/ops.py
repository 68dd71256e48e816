"""The operation of costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

from rookery.base.clock import parse_duration, stamp
from rookery.costs import store
from rookery.costs.live import add_running
from rookery.db.commits import Commits
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, RUNS, Choices, Doc, Ref, op
from rookery.sessions import store as sessions

_REST, _LOOK_AGAIN = 0.3, 2.0
"""Some programs write what they use into files of their own, and no commit reports that."""


@op("costs", needs="agent.read", view="runs.costs")
def costs(
    ctx: Context,
    *,
    by: Annotated[str, Choices(tuple(store.GROUPINGS)), Doc("What to add up by (agent).")] = "agent",
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only this agent.")] = None,
    run: Annotated[str | None, Ref(RUNS), Doc("Only this run.")] = None,
    since: Annotated[str | None, Doc("Only turns that began within this time, such as 2h.")] = None,
    live: Annotated[
        bool,
        FOLLOWS,
        Doc("Count turns that are still running too, and show it again whenever it changes, until interrupted."),
    ] = False,
) -> Iterator[store.Costs]:
    """Show what agents used, in tokens and dollars."""
    start = None if since is None else stamp(ctx.clock() - parse_duration(since))
    run = None if run is None else sessions.find_run(ctx.db, run).id
    sum_up = partial(store.sum_up, ctx.db, by, agent=agent, run=run, since=start)
    if not live:
        return iter([sum_up()])
    return _watch(ctx, lambda: add_running(ctx.db, ctx.root, ctx.config, sum_up(), agent=agent, run=run))


def _watch(ctx: Context, read: Callable[[], store.Costs]) -> Iterator[store.Costs]:
    shown = None
    with Commits(ctx.db.path, rest=_REST) as commits:
        while True:
            costs = read()
            if costs != shown:
                yield costs
            shown = costs
            commits.wait(_LOOK_AGAIN)
