"""What an agent may call: an operation names the permission that it needs, a role names those that it has."""

from __future__ import annotations

from rookery.agents.roles import find_role
from rookery.base.errors import Refused
from rookery.mail.identity import prove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context
    from rookery.ops.operation import Op


class NotPermitted(Refused):
    """The agent's role does not allow that."""

    code = "not_permitted"


def check_permitted(ctx: Context, operation: Op) -> None:
    """Raise unless the calling agent's role allows the operation. A person may do everything."""
    caller = prove(ctx.db, ctx.environ)
    if caller.session_id is None:
        return
    role = find_role(str(ctx.db.value("SELECT role FROM sessions WHERE id = ?", (caller.session_id,))))
    if operation.needs not in role.needs:
        raise NotPermitted(
            f"a {role.name} may not `rook {operation.name}` (it needs {operation.needs})",
            hint="ask whoever you answer to, by mail: `rook mail send @lead --type question …`",
        )
