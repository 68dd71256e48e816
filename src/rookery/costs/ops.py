"""What we offer of costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rookery.base.clock import parse_duration, stamp
from rookery.costs import store
from rookery.costs.live import add_running
from rookery.db.commits import Commits
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, RUNS, Choices, Doc, Ref, op

_REST, _LOOK_AGAIN = 0.3, 2.0
"""Some programs write what they use into files of their own, which nothing tells of."""


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
    settled = store.sum_up(ctx.db, by, agent=agent, run=run, since=start)
    if not live:
        return iter([settled])
    return _watch(ctx, by, agent, run, start)


def _watch(ctx: Context, by: str, agent: str | None, run: str | None, start: str | None) -> Iterator[store.Costs]:
    seen = None
    with Commits(ctx.db.path, rest=_REST) as commits:
        while True:
            settled = store.sum_up(ctx.db, by, agent=agent, run=run, since=start)
            found = add_running(ctx.db, ctx.root, ctx.config, settled, agent=agent, run=run)
            if found != seen:
                yield found
            seen = found
            commits.wait(_LOOK_AGAIN)
