"""What the doctor asks of tasks."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.text import in_words, plural
from rookery.ops.checks import open_for_checks
from rookery.tasks import store
from rookery.tasks.history import agrees
from rookery.tasks.model import APPROVED, IN_PROGRESS, contradiction

_CATEGORY = "tasks"


def check_history(place: Place) -> Iterator[Finding]:
    """The events lead to the state in the tables."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        if agrees(ctx.db):
            yield Finding(
                _CATEGORY, "history", OK, f"the events lead to the state of {plural(store.count(ctx.db), 'task')}"
            )
        else:
            yield Finding(
                _CATEGORY,
                "history",
                ERROR,
                "the events do not lead to the state that is stored",
                "something else wrote to the database; `rook data export` keeps what is there",
            )


def check_states(place: Place) -> Iterator[Finding]:
    """No task is in a state which no step leads to."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        tasks = store.in_states(ctx.db, IN_PROGRESS, APPROVED)
    wrong = [(task.id, reason) for task in tasks if (reason := contradiction(task))]
    if not wrong:
        yield Finding(_CATEGORY, "states", OK, "every task has what its state needs")
    for task_id, reason in wrong:
        hint = f"`rook task release {task_id}` or `rook task cancel {task_id}`"
        if reason.startswith(f"is {in_words(APPROVED)}"):
            hint = f"`rook task complete {task_id}` if it is done, else `rook task cancel {task_id}`"
        yield Finding(_CATEGORY, "states", WARNING, f"{task_id} {reason}", hint)


CHECKS = (check_history, check_states)
