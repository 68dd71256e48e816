"""A quick look, with every command, for agents that a kill or a reboot left without anybody to drive them.

It costs one query and a glance at the processes; only what is really amiss loads the rest.
"""

from __future__ import annotations

from rookery.base.clock import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


_ON_ITS_WAY = 2.0
"""How long a runner that was just started may take until it shows itself."""
_LEASE = 600.0
"""As in `agents.stop`, which would take long to load."""


def notice(ctx: Context) -> None:
    """Mend what was left behind, if there is anything."""
    lately = stamp(ctx.clock() - _ON_ITS_WAY)
    rows = ctx.db.all(
        "SELECT s.state, s.mode, s.step, s.reason, s.runner_pid, s.runner_start, s.updated_at > ?, s.updated_at < ?, "
        "EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND m.turn_id IS NULL) "
        "FROM sessions s WHERE s.state <> 'ended'",
        (lately, stamp(ctx.clock() - _LEASE)),
    )
    if not any(_is_amiss(*row) for row in rows):
        return
    from rookery.agents.home import Home
    from rookery.agents.recovery import recover

    recover(Home.of(ctx))


def _is_amiss(
    state: str,
    mode: str,
    step: str,
    reason: str | None,
    pid: int | None,
    start: str | None,
    is_new: int,
    is_old: int,
    has_mail: int,
) -> bool:
    if reason is not None and reason.startswith("stopping "):
        _, stopper, since = reason.split(" ", 2)
        return _is_gone(int(stopper), since, bool(is_old))
    if pid is not None and not _is_gone(pid, start):
        return False
    if state == "booting" and step != "ready":
        return True
    if mode == "tmux":
        return False  # its terminal is looked at by `rook status`; asking tmux would start a process each time
    if state == "booting":
        return not is_new
    return state != "waiting" or bool(has_mail)


def _is_gone(pid: int, start: str | None, lease_is_over: bool = False) -> bool:
    from rookery.base.holder import is_gone, read

    return is_gone(read(pid, start), lease_is_over=lease_is_over)
