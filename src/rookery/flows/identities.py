"""Identity files that are older than the last session of their agent: whatever ended it could not write the file."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.flows.model import Action, Plan
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.status.identity import renew_identity

NAME = "identities"


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """One file that is to be written."""

    agent: str
    session_id: str
    """The session that has ended since."""


def read(ctx: Context) -> list[Facts]:
    """Every file that is out of date."""
    return [Facts(agent, session_id) for agent, session_id in store.identities_due(ctx.db).items()]


def decide(facts: list[Facts], now: float) -> Plan:
    """Write each of them."""
    del now
    return Plan(
        tuple(
            Action(NAME, "write identity", each.agent, "its last session has ended", seen=repr(each.as_dict()))
            for each in facts
        )
    )


ACTIONS = {"write identity": renew_identity}
