"""A clock that was set back: leases whose ends were recorded before would go on for as long as it went back.

Every claim has an event with its time, so recorded times in the future show it. Then all ends of leases are set back
too: a holder keeps what was left of its lease, and no more. What waits since a recorded time asks
`base.clock.has_passed`. Which of two things came first is decided by the numbers of their rows, not by times.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import is_future
from rookery.base.record import Record
from rookery.events.store import CLOCK, CLOCK_SET_BACK, latest_time, publish
from rookery.flows.model import Action, Plan
from rookery.mail.model import SYSTEM
from rookery.merge import lease_store
from rookery.ops.context import Context
from rookery.tasks import lifecycle
from rookery.tasks.store import Author

NAME = "deadlines"


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """What the events say of the time."""

    latest: float
    """The latest time that was recorded; 0 without events."""


def read(ctx: Context) -> Facts:
    """The latest recorded time."""
    return Facts(latest_time(ctx.db))


def decide(facts: Facts, now: float) -> Plan:
    """Set back what was recorded, if it is in the future."""
    if not is_future(facts.latest, now):
        return Plan()
    why = f"the clock was set back by {facts.latest - now:.0f} s or more"
    return Plan((Action(NAME, "set back deadlines", CLOCK, why, "of leases", str(facts.latest)),))


def set_back(ctx: Context, _subject: str) -> None:
    """Let recorded ends come as soon as they would have, had the clock not been set back; once."""
    with ctx.db.write() as db:
        latest, now = read(ctx).latest, ctx.clock()
        if not is_future(latest, now):
            return  # another process was faster
        seconds = latest - now
        lifecycle.set_back_leases(db, seconds, Author(SYSTEM, ctx.now()))
        lease_store.set_back(db, seconds)
        publish(db, CLOCK_SET_BACK, CLOCK, {"seconds": round(seconds, 3)}, actor=SYSTEM, at=ctx.now())


ACTIONS = {"set back deadlines": set_back}
