"""How far a role's permissions reach. `permits` enforces it; the guard reads it to say no earlier.

An operation names the permission that it needs, and what it changes that may be somebody's (`Op.owns`). A role's file
says which permissions it has and how far they reach, within the list in `permissions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.ops.operation import Op
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import Role
from rookery.roles.permissions import PROGRAM


@dataclass(frozen=True, slots=True)
class Refusal(Record):
    """Why a role may not call an operation, and what works instead."""

    reason: str
    hint: str


def reach_of(role: Role, permission: str) -> str:
    """How far a role's permission reaches; empty if it has none."""
    return role.rights.get(permission, "")


def refuse(role: Role, operation: Op, *, as_command: bool = False) -> Refusal | None:
    """Why the role may not call the operation at all; None if it may. `as_command`: the agent itself calls it."""
    reach = reach_of(role, operation.needs)
    if reach and not (as_command and reach == PROGRAM):
        return None
    why = f"that is for {_list_roles(operation.needs)}"
    if reach == PROGRAM:
        why = "its program does, at its events"
    reason = f"a {role.name} may not `rook {operation.name}`: {why}"
    return Refusal(reason, "ask for it by mail: `rook mail send @lead --type question --subject … --body …`")


def _list_roles(permission: str) -> str:
    roles = sorted(role.name for role in builtin_roles().values() if permission in role.rights)
    return f"people and the roles {', '.join(roles)}" if roles else "people"
