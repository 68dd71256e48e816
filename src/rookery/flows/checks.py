"""What the doctor asks of the loop."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.agents.checks import open_for_checks
from rookery.base.check import OK, WARNING, Finding, Place
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.flows import loop
from rookery.flows.model import Action
from rookery.ops.context import Context

_CATEGORY = "loop"


def check_loop(place: Place) -> Iterator[Finding]:
    """Nothing was left half done by a kill, and nothing was given up."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        found = loop.look(ctx)
        for action in found.plan.actions:
            yield Finding(
                _CATEGORY,
                action.label or action.subject,
                WARNING,
                f"{action.why}: {action.name}",
                "run `rook doctor --fix`, or any other command",
                lambda action=action: _do(ctx, action),  # type: ignore[misc]
            )
        for action, failure in found.failures.items():
            yield Finding(
                _CATEGORY,
                f"{action.name} {action.label or action.subject}",
                WARNING,
                f"failed {failure.count} times: {failure.error}",
                "`rook loop explain` shows it, `rook loop run` tries again",
            )
        if not found.plan.actions and not found.failures:
            yield Finding(_CATEGORY, "actions", OK, "nothing is left to be done")


def _do(ctx: Context, action: Action) -> str:
    failed: list[str] = []
    db = Database.open(database_path(ctx.root))
    try:
        loop.act(Context.at(ctx.root, db, ctx.config), action, failed.append)
    finally:
        db.close()
    return failed[0] if failed else f"done: {action.name}"


CHECKS = (check_loop,)
