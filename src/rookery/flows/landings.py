"""Landings that a kill cut off: finished where the base has moved, put back into the queue where it has not."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.flows.model import Action, Plan, Timer
from rookery.mail.model import SYSTEM
from rookery.merge import recovery
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
        rows = db.all(
            "SELECT base, pid, pid_start, expires_at FROM merge_leases WHERE holder IS NOT NULL "
            "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE state IN ('testing', 'landing') "
            "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE kind = 'undoing' "
            "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE state = 'landed' AND followed_at IS NULL"
        )
    facts: dict[str, Facts] = {}
    for base, pid, start, expires in rows:
        if pid is None:
            facts.setdefault(base, Facts(base, False, 0.0, None))
            continue
        holder = holders.read(pid, start)
        is_elsewhere = holders.is_elsewhere(holder)
        is_held = not holders.is_gone(holder, lease_is_over=expires <= now)
        facts[base] = Facts(
            base,
            is_held,
            seconds_of(expires) if is_elsewhere else 0.0,
            None if is_elsewhere else holder.identity,
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
    recovery.recover(Merger(ctx, SYSTEM), base)


ACTIONS = {"settle landing": settle}
