"""What each role may do with `rook`: the one table. `permits` enforces it; the guard reads it to say no earlier.

An operation names the permission that it needs, and what it changes that may be somebody's (`Op.owns`). The table says
which roles have the permission, and how far it reaches: to what is the agent's own, to what is under its task and the
agents under it as well, or to anything. A permission without roles is for people alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.ops.operation import Op

OWN, BENEATH, ANY = "own", "beneath", "any"
PROGRAM = "program"
"""Not a command for the agent: its program calls it, at its events."""

_EVERYBODY = ("coordinator", "lead", "builder", "scout", "reviewer", "merger", "monitor")
_READING: Mapping[str, str] = dict.fromkeys(_EVERYBODY, ANY)
_OF_ITS_OWN: Mapping[str, str] = dict.fromkeys(_EVERYBODY, OWN) | {"lead": BENEATH, "coordinator": ANY}
_LEADING: Mapping[str, str] = {"lead": BENEATH, "coordinator": ANY}
_COORDINATING: Mapping[str, str] = {"coordinator": ANY}
_PEOPLE: Mapping[str, str] = {}

RIGHTS: dict[str, Mapping[str, str]] = {
    "agent.read": _READING,
    "config.read": _READING,
    "events.read": _READING,
    "learning.read": _READING,
    "mail.read": _READING,
    "project.read": _READING,
    "task.read": _READING,
    "vcs.read": _READING,
    "mail.write": _OF_ITS_OWN,
    "learning.write": _OF_ITS_OWN,
    "task.write": {"builder": OWN, "merger": OWN, **_LEADING},
    "vcs.write": {"builder": OWN, "merger": OWN, **_COORDINATING},
    "epic.write": _LEADING,
    "spec.write": _LEADING,
    "agent.write": _LEADING,
    "plan.write": _COORDINATING,
    "run.write": _COORDINATING,
    # Landing is for work that others made: that is what a merger is for.
    "merge.write": {"merger": ANY, **_COORDINATING},
    "hook.write": dict.fromkeys(_EVERYBODY, PROGRAM),
    "branch.write": _PEOPLE,
    "daemon.read": _PEOPLE,
    "daemon.write": _PEOPLE,
    "data.write": _PEOPLE,
    "doctor.write": _PEOPLE,
    "environment.read": _PEOPLE,
    "environment.write": _PEOPLE,
    "gate.write": _PEOPLE,  # `rook gate run` runs a branch's code outside of the sandbox
    "guard.read": _PEOPLE,
    "mailbox.write": _PEOPLE,
    "project.write": _PEOPLE,
    "terminal.write": _PEOPLE,
    "worktree.write": _PEOPLE,
}


@dataclass(frozen=True, slots=True)
class Refusal(Record):
    """Why a role may not call an operation, and what works instead."""

    reason: str
    hint: str


def reach_of(role: str, permission: str) -> str:
    """How far a role's permission reaches; empty if it has none."""
    return RIGHTS.get(permission, _PEOPLE).get(role, "")


def permissions_of(role: str) -> frozenset[str]:
    """Every permission that a role has."""
    return frozenset(permission for permission, roles in RIGHTS.items() if role in roles)


def refuse(role: str, operation: Op, *, as_command: bool = False) -> Refusal | None:
    """Why the role may not call the operation at all; None if it may. `as_command`: the agent itself calls it."""
    reach = reach_of(role, operation.needs)
    if reach and not (as_command and reach == PROGRAM):
        return None
    why = f"that is for {_list_roles(operation.needs)}"
    if reach == PROGRAM:
        why = "its program does, at its events"
    reason = f"a {role} may not `rook {operation.name}`: {why}"
    return Refusal(reason, "ask for it by mail: `rook mail send @lead --type question --subject … --body …`")


def _list_roles(permission: str) -> str:
    roles = sorted(RIGHTS.get(permission, _PEOPLE))
    return f"people and the roles {', '.join(roles)}" if roles else "people"
