"""What killed processes left on the disk: scratch folders, and temporary folders of git."""

from __future__ import annotations

from rookery.base import holder as holders
from rookery.base.proctable import Identity
from rookery.base.record import Record
from rookery.flows.model import Action, Plan
from rookery.mail.model import SYSTEM
from rookery.merge import scratch
from rookery.merge.desk import Desk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.home import Home

NAME = "leftovers"


class Facts(Record):
    """A folder that is to go as soon as its holder no longer needs it."""

    name: str
    is_left: bool
    """Its holder is gone."""
    owner: Identity | None
    """The holder's process, where it is alive and on this host."""


def read(home: Home) -> list[Facts]:
    """Every scratch folder that no job needs."""
    return [_facts(home, name) for name in scratch.names(home)]


def _facts(home: Home, name: str) -> Facts:
    if scratch.is_left(home, name):
        return Facts(name, True, None)
    owner = scratch.owner_of(home, name)
    return Facts(name, False, None if owner is None or holders.is_elsewhere(owner) else owner.identity)


def decide(facts: list[Facts], now: float) -> Plan:
    """Remove what is left. What has a holder costs nothing until that ends: no timer, and its end is seen."""
    del now
    return Plan(
        tuple(
            Action(NAME, "remove scratch", each.name, "its process was killed", "", repr(each.as_dict()))
            for each in facts
            if each.is_left
        ),
        processes=tuple(each.owner for each in facts if each.owner is not None),
    )


def _remove(home: Home, name: str) -> None:
    if name in scratch.names(home):
        scratch.drop_left(Desk(home, SYSTEM), name)


ACTIONS = {"remove scratch": _remove}
