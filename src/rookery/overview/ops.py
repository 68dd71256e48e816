"""What we offer for looking at the whole project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rookery.ops.context import Context
from rookery.ops.operation import FOLLOWS, Doc, op
from rookery.overview.service import Overview, overview
from rookery.status.panes import StatusWatch

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
