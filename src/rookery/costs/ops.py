"""What we offer of costs."""

from __future__ import annotations

from rookery.base.clock import parse_duration, stamp
from rookery.costs import store
from rookery.ops.operation import op, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


@op(
    "costs",
    option("by", "What to add up by (agent).", choices=tuple(store.GROUPINGS), default="agent"),
    option("agent", "Only this agent."),
    option("run", "Only this run."),
    option("since", "Only turns that began within this time, such as 2h."),
    needs="agent.read",
    view="costs.table",
)
def costs(ctx: Context, by: str, agent: str | None, run: str | None, since: str | None) -> store.Costs:
    """Show what agents used, in tokens and dollars."""
    start = None if since is None else stamp(ctx.clock() - parse_duration(since))
    return store.sum_up(ctx.db, by, agent=agent, run=run, since=start)
