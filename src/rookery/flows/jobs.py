"""Gates and resolving agents whose merger was killed: the loop keeps their results, and removes what is left."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.flows.model import Action, Plan, visible_process
from rookery.mail.model import SYSTEM
from rookery.merge import store as merges
from rookery.merge.gates import jobs, scratch, settlement
from rookery.merge.merger import Merger
from rookery.merge.model import OPEN
from rookery.ops.context import Context
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
    """That merger's process, if it is alive and on this host."""
    is_wanted: bool = False
    """It is an agent's answer for an entry that may still land: that was paid for."""


def read(ctx: Context) -> list[Facts]:
    """Every job."""
    return [_facts(ctx, name) for name in journal.jobs(ctx.root)]


def _facts(ctx: Context, name: str) -> Facts:
    about = jobs.about(ctx.root, name)
    folder = str(about.get("place", ""))
    is_left = not folder or scratch.is_left(ctx, folder)
    return Facts(
        name,
        str(about.get("gate") or about.get("agent") or ""),
        journal.is_running(ctx.root, name),
        is_left,
        None if is_left else visible_process(scratch.owner_of(ctx, folder)),
        _is_wanted(ctx, name, str(about.get("entry", ""))),
    )


def _is_wanted(ctx: Context, name: str, entry_id: str) -> bool:
    entry = merges.find(ctx.db, entry_id)
    if entry is None or entry.state not in OPEN:
        return False
    end = journal.find(ctx.root, name, journal.ENDED)
    return end is not None and not end["failure"]


def decide(facts: list[Facts], _now: float) -> Plan:
    """Settle jobs that have ended and have no merger. A runner's end is seen by its journal, which is closed then."""
    ended = [job for job in facts if not job.is_running]
    return Plan(
        tuple(
            Action(NAME, "settle job", job.name, "its merger was killed", job.label, repr(job.as_dict()))
            for job in ended
            if job.is_left and not job.is_wanted
        ),
        processes=tuple(job.owner for job in ended if job.owner is not None),
    )


def settle(ctx: Context, name: str) -> None:
    """Keep its result."""
    settlement.settle_left(Merger(ctx, SYSTEM), name)


ACTIONS = {"settle job": settle}
