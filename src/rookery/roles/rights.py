"""How far a role's permissions reach. `permits` enforces it; the guard reads it to say no earlier.

An operation names the permission that it needs, and what it changes that may belong to another (`Op.owns`). A role's
file says which permissions it has and how far they reach, within the list in `permissions`.
"""

from __future__ import annotations

from rookery.base.errors import Refused
from rookery.ops.operation import Op
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import Role
from rookery.roles.permissions import PROGRAM


class NotPermitted(Refused):
    """The agent's role does not allow that."""

    code = "not_permitted"


def reach_of(role: Role, permission: str) -> str:
    """How far a role's permission reaches; empty if it has none."""
    return role.rights.get(permission, "")


def may_call(role: Role, operation: Op, *, as_command: bool = False) -> bool:
    """True if the role may call the operation at all. `as_command`: the agent itself calls it, not its program."""
    return reach_of(role, operation.needs) not in (("", PROGRAM) if as_command else ("",))


def check_may_call(role: Role, operation: Op, *, as_command: bool = False) -> None:
    """Raise NotPermitted unless the role may call the operation."""
    if not may_call(role, operation, as_command=as_command):
        is_program = reach_of(role, operation.needs) == PROGRAM
        why = "its program does, at its events" if is_program else f"that is for {_list_roles(operation.needs)}"
        raise NotPermitted(
            f"a {role.name} may not `rook {operation.name}`: {why}",
            hint="ask for it by mail: `rook mail send @lead --type question --subject … --body …`",
        )


def _list_roles(permission: str) -> str:
    roles = sorted(role.name for role in builtin_roles().values() if permission in role.rights)
    return f"people and the roles {', '.join(roles)}" if roles else "people"
