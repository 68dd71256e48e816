"""What we offer of costs."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.clock import parse_duration, stamp
from rookery.costs import store
from rookery.costs.live import add_running
from rookery.db.commits import Commits
from rookery.ops.context import Context
from rookery.ops.operation import flag, op, option

_REST, _LOOK_AGAIN = 0.3, 2.0
"""Some programs write what they use into files of their own, which nothing tells of."""


@op(
    "costs",
    option("by", "What to add up by (agent).", choices=tuple(store.GROUPINGS), default="agent"),
    option("agent", "Only this agent."),
    option("run", "Only this run."),
    option("since", "Only turns that began within this time, such as 2h."),
    flag("live", "Count turns that are still running too, and show it anew whenever it changes, until interrupted."),
    needs="agent.read",
    view="runs.costs",
    streams=True,
)
def costs(
    ctx: Context, by: str, agent: str | None, run: str | None, since: str | None, live: bool
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
