"""What the doctor asks of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.text import plural
from rookery.flows import loop
from rookery.flows.model import Action
from rookery.ops.checks import open_for_checks

_CATEGORY = "loop"


def check_loop(place: Place) -> Iterator[Finding]:
    """A kill left nothing half done, and the loop gave nothing up."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        assessment = loop.assess(ctx)
    for action in assessment.plan.actions:
        yield Finding(
            _CATEGORY,
            action.label or action.subject,
            WARNING,
            f"{action.why}: {action.name}",
            "run `rook doctor --fix`, or any other command",
            partial(_do, place, action),
        )
    for action, failure in assessment.failures.items():
        message = f"failed {plural(failure.count, 'time')}: {failure.error}"
        hint = "`rook loop explain` shows it, `rook loop run` tries again"
        yield Finding(_CATEGORY, action.title, WARNING, message, hint)
    if not assessment.plan.actions and not assessment.failures:
        yield Finding(_CATEGORY, "actions", OK, "there is nothing left to do")


def _do(place: Place, action: Action) -> str:
    problems: list[str] = []
    with open_for_checks(place) as ctx:
        if ctx is not None:
            loop.act(ctx, action, problems.append)
    return problems[0] if problems else f"done: {action.name}"


CHECKS = (check_loop,)
