"""Landings that a kill cut off: finished where the base has moved, put back into the queue where it has not."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.flows.model import Action, Plan, Timer
from rookery.mail.model import SYSTEM
from rookery.merge import lease_store, queue
from rookery.merge import store as merges
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.proctable import Identity

NAME = "landings"


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """A base on which something is under way."""

    base: str
    is_held: bool
    """A merger that lives, or may live, has the lease."""
    expires: float
    """When the lease of a holder elsewhere is over; 0 if that does not matter."""
    process: Identity | None


def read(ctx: Context) -> list[Facts]:
    """Every base with a lease, or with an entry that is not through."""
    now = ctx.now()
    with ctx.db.read() as db:
        leases, bases = lease_store.held(db), merges.unsettled_bases(db)
    facts = {base: Facts(base, False, 0.0, None) for base in sorted(bases)}
    for lease in leases:
        is_elsewhere = holders.is_elsewhere(lease.process)
        facts[lease.base] = Facts(
            lease.base,
            not holders.is_gone(lease.process, lease_is_over=lease.expires_at <= now),
            seconds_of(lease.expires_at) if is_elsewhere else 0.0,
            None if is_elsewhere else lease.process.identity,
        )
    return list(facts.values())


def decide(facts: list[Facts], now: float) -> Plan:
    """Settle where no merger is at work."""
    del now
    left = tuple(
        Action(NAME, "settle landing", each.base, "its merger was killed", each.base, repr(each.as_dict()))
        for each in facts
        if not each.is_held
    )
    held = [each for each in facts if each.is_held]
    return Plan(
        left,
        tuple(Timer(each.expires, f"the lease of {each.base} on another host ends") for each in held if each.expires),
        tuple(each.process for each in held if each.process is not None),
    )


def settle(ctx: Context, base: str) -> None:
    """Finish or put back what a killed merger left; nothing where a merger is alive."""
    queue.recover(Merger(ctx, SYSTEM), base)


ACTIONS = {"settle landing": settle}
