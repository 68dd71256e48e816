"""Landings that a kill cut off: finished where the base has moved, put back into the queue where it has not."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.flows.model import Action, Plan, Timer, visible_process
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
    """A base that has a lease, or an entry that is not through."""

    base: str
    is_held: bool
    """A merger that is alive, or may be, has the lease."""
    expires: float
    """When the lease of a holder elsewhere is over; 0 for other holders."""
    process: Identity | None


def read(ctx: Context) -> list[Facts]:
    """Every base with a lease, or with an entry that is not through."""
    now = ctx.now()
    with ctx.db.read() as db:
        leases, bases = lease_store.held(db), merges.unsettled_bases(db)
    facts = {base: Facts(base, False, 0.0, None) for base in sorted(bases)}
    for lease in leases:
        process = visible_process(lease.process)
        is_held = not holders.is_gone(lease.process, lease_is_over=lease.expires_at <= now)
        expires = seconds_of(lease.expires_at) if process is None else 0.0
        facts[lease.base] = Facts(lease.base, is_held, expires, process)
    return list(facts.values())


def decide(facts: list[Facts], _now: float) -> Plan:
    """Settle where no merger is at work."""
    held = [base for base in facts if base.is_held]
    return Plan(
        tuple(
            Action(NAME, "settle landing", left.base, "its merger was killed", left.base, repr(left.as_dict()))
            for left in facts
            if not left.is_held
        ),
        tuple(Timer(base.expires, f"the lease of {base.base} on another host ends") for base in held if base.expires),
        tuple(base.process for base in held if base.process is not None),
    )


def settle(ctx: Context, base: str) -> None:
    """Finish or put back what a killed merger left; nothing where a merger is alive."""
    queue.recover(Merger(ctx, SYSTEM), base)


ACTIONS = {"settle landing": settle}
