"""A quick look, with every command, for a landing that a kill cut off.

It costs one query and a glance at a process; only what is really amiss loads the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


def notice(ctx: Context) -> None:
    """Settle what was left behind."""
    bases = _left_behind(ctx)
    if bases:
        from rookery.agents.home import Home
        from rookery.merge.desk import Desk
        from rookery.merge.reaction import settle

        settle(Desk(Home.of(ctx), ctx.actor), bases)


def _left_behind(ctx: Context) -> list[str]:
    """The bases on which something is under way that nobody is at any more."""
    rows = ctx.db.all(
        "SELECT base, pid, pid_start, expires_at <= ? FROM merge_leases WHERE holder IS NOT NULL "
        "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE state IN ('testing', 'landing') "
        "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE kind = 'undoing' "
        "UNION ALL SELECT base, NULL, NULL, NULL FROM merges WHERE state = 'landed' AND followed_at IS NULL",
        (ctx.now(),),
    )
    if not rows:
        return []
    from rookery.base.holder import is_gone, read

    held = {
        base
        for base, pid, start, is_over in rows
        if pid is not None and not is_gone(read(pid, start), lease_is_over=is_over)
    }
    return [base for base in dict.fromkeys(row[0] for row in rows) if base not in held]
