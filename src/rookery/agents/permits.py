"""What an agent may call: an operation names the permission that it needs, a role names those that it has."""

from __future__ import annotations

from rookery.base.errors import Refused
from rookery.ops.operation import PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rookery.ops.context import Context
    from rookery.ops.operation import Op


class NotPermitted(Refused):
    """The agent's role does not allow that."""

    code = "not_permitted"


class OutOfSandbox(Refused):
    """What is asked from within a sandbox would reach out of it."""

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
    """Raise unless the calling agent's role, and its contract, allow the call. A person may do everything."""
    caller = ctx.caller
    if caller.session_id is None:
        return
    from rookery.agents.roles import find_role

    _check_acts_itself(caller.name, operation, values)
    role = find_role(caller.role)
    if operation.needs not in role.needs:
        raise NotPermitted(
            f"a {role.name} may not `rook {operation.name}` (it needs {operation.needs})",
            hint="ask whoever you answer to, by mail: `rook mail send @lead --type question …`",
        )
    says_it_is_over = role.can_spawn and values.get("type") in role.ends_with
    if operation.changes_state and (says_it_is_over or operation.group == "task"):
        from rookery.agents import store
        from rookery.agents.contract import check_call

        check_call(ctx.db, store.session(ctx.db, caller.session_id), operation.name, values)


def _check_acts_itself(name: str, operation: Op, values: Mapping[str, Any]) -> None:
    for param in operation.params:
        if param.acts_as and values.get(param.name) not in (None, name):
            raise NotPermitted(
                f"{name} cannot `rook {operation.name}` as {values[param.name]}", hint=f"leave {param.flag} out"
            )
