"""What a caller may call: a person everything, an agent what `rights` allows its role, on what is its own.

Every interface asks here before it runs an operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rookery.base.errors import Refused
from rookery.guard.open_work import check_call
from rookery.guard.ownership import check_owned
from rookery.ops.context import Context
from rookery.ops.operation import PATH, Op
from rookery.roles.catalog import read_role
from rookery.roles.permissions import is_for_programs
from rookery.roles.rights import NotPermitted, check_may_call, reach_of

_ENDS_TASK = ("task complete", "task submit")
_MAIL = ("mail send", "mail reply")


class OutOfSandbox(Refused):
    """A call from within a sandbox would reach out of it."""

    code = "out_of_sandbox"


def check_confined(operation: Op, values: Mapping[str, Any], folder: str, settings: Mapping[str, str]) -> None:
    """Raise if a caller in a sandbox names a file, a folder or a setting: out here they would be the user's own."""
    if folder or settings:
        raise OutOfSandbox(
            "-C and -c cannot be used from within a sandbox", hint="the command runs in your worktree, as configured"
        )
    for param in operation.params:
        if param.kind == PATH and values.get(param.name):
            raise OutOfSandbox(
                f"`rook {operation.name}` takes no file ({param.flag}) from within a sandbox",
                hint="give a text by `-` and standard input, such as `rook spec write TASK --body -`",
            )


def check_permitted(ctx: Context, operation: Op, values: dict[str, Any]) -> None:
    """Raise unless the caller is who it says it is, and may make the call. A person may do everything."""
    caller = ctx.caller
    if caller.session_id is None:
        return
    if ctx.flags:
        raise NotPermitted("settings are changed by people: -c is not for agents", hint="call `rook` as it is")
    check_acts_itself(caller.name, operation, values)
    if is_for_programs(operation.needs):
        return  # an agent's program reports its events even while its role's file cannot be used
    role = read_role(ctx.root, caller.role)
    check_may_call(role, operation)
    if operation.owns:
        check_owned(ctx.db, caller, operation, values, ctx.cwd, reach_of(role, operation.needs))
    ends = role.can_spawn and operation.name in _MAIL and values.get("type") in role.ends_with
    if ends or operation.name in _ENDS_TASK:
        check_call(ctx.db, caller, values)


def check_acts_itself(name: str, operation: Op, values: Mapping[str, Any]) -> None:
    """Raise NotPermitted if an option would let an agent act as another one."""
    for param in operation.params:
        if param.acts_as and values.get(param.name) not in (None, name):
            raise NotPermitted(
                f"{name} cannot `rook {operation.name}` as {values[param.name]}", hint=f"leave {param.flag} out"
            )
