"""Operations of the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rookery.base.clock import stamp
from rookery.base.record import Record
from rookery.config import layout
from rookery.flows import loop, store
from rookery.flows.model import Action, Failure
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, op
from rookery.processes.locks import is_locked


@dataclass(frozen=True, slots=True)
class Failed(Record):
    """An action that is still wanted, and has failed."""

    name: str
    label: str
    count: int
    error: str
    next_at: str | None
    """When the loop tries it again; None if it is left to a person."""


@dataclass(frozen=True, slots=True)
class Alarm(Record):
    """A time at which the loop checks again by itself."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Explained(Record):
    """What the loop sees, what it decides, and when it checks again by itself."""

    runs: bool
    """A process runs the loop; without one, every command runs it once at its end."""
    facts: dict[str, Any]
    actions: tuple[Action, ...]
    """What the loop does now."""
    failures: tuple[Failed, ...]
    running: int
    """How many runners are at work."""
    timers: tuple[Alarm, ...]
    """The next one first."""


@dataclass(frozen=True, slots=True)
class Ran(Record):
    """What was done."""

    actions: tuple[Action, ...]
    problems: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1 if something failed."""
        return 1 if self.problems else 0


@op("loop explain", needs="agent.read", long=True, view="loop.explained")
def explain(ctx: Context) -> Explained:
    """Show what the control loop sees, what it decides to do and why, and when it checks again by itself."""
    assessment = loop.assess(ctx)
    plan = assessment.plan
    return Explained(
        is_locked(layout.path(ctx.root, layout.LOOP_LOCK)),
        {name: _plain(facts) for name, facts in assessment.facts.items()},
        tuple(action.replace(seen="") for action in plan.actions),
        tuple(_failed(action, failure) for action, failure in assessment.failures.items()),
        plan.running,
        tuple(Alarm(stamp(timer.at), timer.why) for timer in sorted(plan.timers, key=lambda timer: timer.at)),
    )


def _failed(action: Action, failure: Failure) -> Failed:
    next_at = None if failure.is_given_up else stamp(failure.next_at)
    return Failed(action.name, action.label or action.subject, failure.count, failure.error, next_at)


@op("loop run", needs="agent.write", long=True, touches=PROCESS, owns=NOTHING, view="loop.ran")
def run(ctx: Context) -> Ran:
    """Run the loop once, and try again what it gave up after many failures."""
    with ctx.db.write() as db:
        for key in store.failures(db):
            store.forget(db, key)
    problems: list[str] = []
    actions = loop.assess(ctx).plan.actions
    for action in actions:
        loop.act(ctx, action, problems.append)
    return Ran(actions, tuple(problems))


def _plain(facts: Any) -> Any:
    if isinstance(facts, list):
        return [fact.as_dict() for fact in facts]
    return None if facts is None else facts.as_dict()
