"""Gates and resolving agents whose merger was killed: their results are kept, and what is left of them goes."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.flows.model import Action, Plan
from rookery.mail.model import SYSTEM
from rookery.merge import store as merges
from rookery.merge.gates import jobs, scratch
from rookery.merge.gates import service as gates
from rookery.merge.merger import Merger
from rookery.merge.model import OPEN
from rookery.merge.tiers import oneshot
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.proctable import Identity
from rookery.sessions import journal

NAME = "jobs"


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """A job that runs, or has ended and is not settled."""

    name: str
    label: str
    is_running: bool
    is_left: bool
    """The merger that started it is gone."""
    owner: Identity | None
    """That merger's process, where it is alive and on this host."""
    is_wanted: bool = False
    """It is an agent's answer for something that is still to land: that was paid for."""


def read(ctx: Context) -> list[Facts]:
    """Every job."""
    return [_facts(ctx, name) for name in journal.jobs(ctx.root)]


def _facts(ctx: Context, name: str) -> Facts:
    is_running = journal.is_running(ctx.root, name)
    about = jobs.about(ctx.root, name)
    place = str(about.get("place", ""))
    is_left = not place or scratch.is_left(ctx, place)
    owner = None if is_left else scratch.owner_of(ctx, place)
    process = None if owner is None or holders.is_elsewhere(owner) else owner.identity
    label = str(about.get("gate") or about.get("agent") or "")
    return Facts(name, label, is_running, is_left, process, _is_wanted(ctx, name, str(about.get("entry", ""))))


def _is_wanted(ctx: Context, name: str, entry_id: str) -> bool:
    entry = merges.find(ctx.db, entry_id)
    if entry is None or entry.state not in OPEN:
        return False
    end = journal.find(ctx.root, name, journal.ENDED)
    return end is not None and not end["failure"]


def decide(facts: list[Facts], now: float) -> Plan:
    """Settle what has ended and nobody waits for. The end of a runner closes its journal, and is seen by that."""
    del now
    ended = [each for each in facts if not each.is_running]
    return Plan(
        tuple(
            Action(NAME, "settle job", each.name, "its merger was killed", each.label, repr(each.as_dict()))
            for each in ended
            if each.is_left and not each.is_wanted
        ),
        processes=tuple(each.owner for each in ended if each.owner is not None),
    )


def settle(ctx: Context, name: str) -> None:
    """Keep its result."""
    if jobs.about(ctx.root, name).get("agent"):
        oneshot.settle_left(Merger(ctx, SYSTEM), name)
    else:
        gates.settle_left(Merger(ctx, SYSTEM), name)


ACTIONS = {"settle job": settle}
