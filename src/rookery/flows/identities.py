"""Identity files that are older than the last session of their agent: its end could not write them."""

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
    """One file that has to be written."""

    agent: str
    session_id: str
    """The session that ended after it was written."""


def read(ctx: Context) -> list[Facts]:
    """Every file that is out of date."""
    return [Facts(agent, session_id) for agent, session_id in store.identities_due(ctx.db).items()]


def decide(facts: list[Facts], _now: float) -> Plan:
    """Write all of them."""
    why = "its last session has ended"
    return Plan(tuple(Action(NAME, "write identity", stale.agent, why, seen=repr(stale.as_dict())) for stale in facts))


ACTIONS = {"write identity": renew_identity}
