"""What we offer of the loop."""

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
    """Something that is to be done, and has failed."""

    name: str
    label: str
    count: int
    error: str
    next_at: str | None
    """When it is tried again; None if it is left to a person."""


@dataclass(frozen=True, slots=True)
class Alarm(Record):
    """A moment at which the loop looks again by itself."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Explained(Record):
    """What the loop sees, what it decides, and when it looks again by itself."""

    runs: bool
    """A process runs the loop; without one, every command looks once at its end."""
    facts: dict[str, Any]
    actions: tuple[Action, ...]
    """What is to be done now."""
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
    """Show what the control loop sees, what it decides to do and why, and when it looks again by itself."""
    found = loop.look(ctx)
    return Explained(
        is_locked(layout.path(ctx.root, layout.LOOP_LOCK)),
        {name: _plain(facts) for name, facts in found.facts.items()},
        tuple(each.replace(seen="") for each in found.plan.actions),
        tuple(_failed(action, failure) for action, failure in found.failures.items()),
        found.plan.running,
        tuple(Alarm(stamp(each.at), each.why) for each in sorted(found.plan.timers, key=lambda timer: timer.at)),
    )


def _failed(action: Action, failure: Failure) -> Failed:
    next_at = None if failure.is_given_up else stamp(failure.next_at)
    return Failed(action.name, action.label or action.subject, failure.count, failure.error, next_at)


@op("loop run", needs="agent.write", long=True, touches=PROCESS, owns=NOTHING, view="loop.ran")
def run(ctx: Context) -> Ran:
    """Look once and do what is to be done, also what was given up after many failures."""
    with ctx.db.write() as db:
        for key in store.failures(db):
            store.forget(db, key)
    problems: list[str] = []
    actions = loop.look(ctx).plan.actions
    for action in actions:
        loop.act(ctx, action, problems.append)
    return Ran(actions, tuple(problems))


def _plain(facts: Any) -> Any:
    if facts is None:
        return None
    if isinstance(facts, list):
        return [each.as_dict() for each in facts]
    return facts.as_dict()
