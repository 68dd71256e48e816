"""What we offer for looking at the whole project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rookery.base.clock import parse_duration, stamp
from rookery.base.errors import InvalidInput
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, FOLLOWS, ROLES, RUNS, TASKS, Choices, Doc, Ref, op
from rookery.overview.metrics import ALIVE, Metrics
from rookery.overview.metrics import metrics as select_metrics
from rookery.overview.service import Overview, overview
from rookery.roles.catalog import find_role
from rookery.sessions.model import OUTCOMES
from rookery.status.panes import StatusWatch
from rookery.status.service import find, find_run
from rookery.tasks.store import resolve

_TICK = 1.0


@op("status", needs="agent.read", redraws=True, view="agents.status")
def status(
    ctx: Context,
    *,
    all: Annotated[bool, Doc("Also every agent that has ended, not only within the last hour.")] = False,
    watch: Annotated[bool, FOLLOWS, Doc("Keep it up to date, until interrupted with Ctrl-C.")] = False,
) -> Iterator[Overview]:
    """Show what needs you, what every agent is doing, and how many tasks are left."""
    return _watch(ctx, all) if watch else iter([overview(ctx, all_ended=all)])


@op("metrics", needs="agent.read", view="agents.metrics")
def metrics(
    ctx: Context,
    *,
    agent: Annotated[str | None, Ref(AGENTS), Doc("Only sessions of this agent.")] = None,
    role: Annotated[str | None, Ref(ROLES), Doc("Only this role.")] = None,
    parent: Annotated[str | None, Ref(AGENTS), Doc("Only those that answer to this agent, or to `human`.")] = None,
    task: Annotated[str | None, Ref(TASKS), Doc("Only those on this task.")] = None,
    run: Annotated[str | None, Ref(RUNS), Doc("Only those of this run.")] = None,
    outcome: Annotated[str | None, Choices((*OUTCOMES, ALIVE)), Doc("Only those that ended so, or are alive.")] = None,
    since: Annotated[str | None, Doc("Only those that began so recently, such as 2h or 7d.")] = None,
    last: Annotated[int, Doc("How many sessions (20; 0 for all).")] = 20,
) -> Metrics:
    """Show agents' sessions in numbers, the newest first, with their totals and averages."""
    if last < 0:
        raise InvalidInput("the number of sessions is negative", hint="0 shows all")
    wanted = {
        "agent": None if agent is None else find(ctx.db, agent).agent,
        "role": None if role is None else find_role(ctx.root, role).name,
        "parent": parent,
        "task_id": None if task is None else resolve(ctx.db, task),
        "run_id": None if run is None else find_run(ctx.db, run).id,
    }
    start = None if since is None else stamp(ctx.clock() - parse_duration(since))
    return select_metrics(ctx.db, last, outcome=outcome, since=start, **wanted)


def _watch(ctx: Context, all_ended: bool) -> Iterator[Overview]:
    """On a terminal the times go on, so each second counts as a change."""
    shown = None
    with StatusWatch(ctx) as watch:
        while True:
            now = overview(ctx, all_ended=all_ended, screens=watch.screens())
            if ctx.is_interactive or shown is None or now.replace(at=shown.at) != shown:
                yield now
                shown = now
            if ctx.is_interactive:
                watch.wait(_TICK)
            else:
                watch.wait()
