"""What killed processes left on the disk: scratch folders, temporary folders of git, worktrees half taken away."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.flows.model import Action, Plan
from rookery.mail.model import SYSTEM
from rookery.merge.gates import scratch
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import Identity
from rookery.worktrees import removal
from rookery.worktrees import service as worktrees
from rookery.worktrees.store import pending

NAME = "leftovers"
SCRATCH, CLEANING = "scratch folder", "cleaning"
_LONGEST = 86_400.0
"""How long, in seconds, a cleaning is left to a process of which nobody here can see whether it lives."""
_ACTIONS = {SCRATCH: "remove scratch", CLEANING: "finish cleaning"}


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """What is to go as soon as its holder no longer needs it."""

    kind: str
    name: str
    """Of a scratch folder its name, of a worktree that is being taken away its path."""
    label: str
    is_left: bool
    """Its holder is gone."""
    owner: Identity | None
    """The holder's process, where it is alive and on this host."""


def read(ctx: Context) -> list[Facts]:
    """Every scratch folder that no job needs, and every cleaning that is not through."""
    facts = [_scratch(ctx, name) for name in scratch.names(ctx)]
    with ctx.db.read() as db:
        cleanings = pending(db)
    now = ctx.clock()
    for each in cleanings:
        is_left = holders.is_gone(each.holder, lease_is_over=now - seconds_of(each.at) > _LONGEST)
        facts.append(Facts(CLEANING, each.path, each.agent, is_left, _process(is_left, each.holder)))
    return facts


def _scratch(ctx: Context, name: str) -> Facts:
    is_left = scratch.is_left(ctx, name)
    return Facts(SCRATCH, name, name, is_left, _process(is_left, scratch.owner_of(ctx, name)))


def _process(is_left: bool, holder: HolderId | None) -> Identity | None:
    return None if is_left or holder is None or holders.is_elsewhere(holder) else holder.identity


def decide(facts: list[Facts], now: float) -> Plan:
    """Remove what is left. What has a holder costs nothing until that ends: no timer, and its end is seen."""
    del now
    return Plan(
        tuple(
            Action(NAME, _ACTIONS[each.kind], each.name, "its process was killed", each.label, repr(each.as_dict()))
            for each in facts
            if each.is_left
        ),
        processes=tuple(each.owner for each in facts if each.owner is not None),
    )


def _remove(ctx: Context, name: str) -> None:
    if name in scratch.names(ctx):
        scratch.drop_left(Merger(ctx, SYSTEM), name)


def _finish(ctx: Context, path: str) -> None:
    vcs = worktrees.open_repository(ctx.root, ctx.config.vcs)
    with removal.alone(ctx.root):
        removal.settle_left(ctx, vcs, path, removal.base_of(ctx, vcs))


ACTIONS = {_ACTIONS[SCRATCH]: _remove, _ACTIONS[CLEANING]: _finish}
