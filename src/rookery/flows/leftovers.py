"""What killed processes left on the disk: scratch folders, temporary folders of git, worktrees half removed."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.clock import has_passed, seconds_of
from rookery.base.record import Record
from rookery.flows.model import Action, Plan, visible_process
from rookery.mail.model import SYSTEM
from rookery.merge.gates import scratch
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import Identity
from rookery.worktrees import removal
from rookery.worktrees.store import pending

NAME = "leftovers"
SCRATCH, CLEANING = "scratch folder", "cleaning"
_LONGEST = 86_400.0
"""How long, in seconds, a cleaning is left to a process that cannot be seen from here."""
_ACTIONS = {SCRATCH: "remove scratch", CLEANING: "finish cleaning"}


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """What has to go as soon as its holder no longer needs it."""

    kind: str
    name: str
    """The name of a scratch folder, the path of a worktree that is being removed."""
    label: str
    is_left: bool
    """Its holder is gone."""
    owner: Identity | None
    """The holder's process, if it is alive and on this host."""


def read(ctx: Context) -> list[Facts]:
    """Every scratch folder that no job needs, and every cleaning that is not through."""
    facts = [
        _facts(SCRATCH, name, name, scratch.is_left(ctx, name), scratch.owner_of(ctx, name))
        for name in scratch.names(ctx)
    ]
    with ctx.db.read() as db:
        cleanings = pending(db)
    for cleaning in cleanings:
        is_over = has_passed(_LONGEST, seconds_of(cleaning.at), ctx.clock())
        is_left = holders.is_gone(cleaning.holder, lease_is_over=is_over)
        facts.append(_facts(CLEANING, cleaning.path, cleaning.agent, is_left, cleaning.holder))
    return facts


def _facts(kind: str, name: str, label: str, is_left: bool, holder: HolderId | None) -> Facts:
    return Facts(kind, name, label, is_left, None if is_left else visible_process(holder))


def decide(facts: list[Facts], _now: float) -> Plan:
    """Remove what is left. The loop sees the end of a holder, so what is held needs no timer."""
    return Plan(
        tuple(
            Action(NAME, _ACTIONS[left.kind], left.name, "its process was killed", left.label, repr(left.as_dict()))
            for left in facts
            if left.is_left
        ),
        processes=tuple(left.owner for left in facts if left.owner is not None),
    )


def _remove(ctx: Context, name: str) -> None:
    if name in scratch.names(ctx):
        scratch.drop_left(Merger(ctx, SYSTEM), name)


def _finish(ctx: Context, path: str) -> None:
    with removal.alone(ctx.root):
        removal.Remover(ctx).settle_left(path)


ACTIONS = {_ACTIONS[SCRATCH]: _remove, _ACTIONS[CLEANING]: _finish}
