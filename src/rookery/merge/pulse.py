"""A quick look, with every command, for a landing that a kill cut off and for turns whose end the radar has not seen.

It costs two queries and a glance at a process; only what is really amiss or new loads the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


def notice(ctx: Context) -> None:
    """Settle what was left behind, and look at the radar if a turn has ended."""
    bases = _left_behind(ctx)
    ended = _unseen_turn(ctx)
    if not bases and ended is None:
        return
    from rookery.merge import reaction

    if bases:
        reaction.settle(ctx, bases)
    if ended is not None:
        reaction.look(ctx, ended)


def _left_behind(ctx: Context) -> list[str]:
    """The bases on which something is under way that nobody is at any more."""
    rows = ctx.db.all(
        "SELECT base, pid, pid_start FROM merge_leases WHERE holder IS NOT NULL "
        "UNION ALL SELECT base, NULL, NULL FROM merges WHERE state IN ('testing', 'landing') "
        "UNION ALL SELECT base, NULL, NULL FROM merges WHERE kind = 'undoing'"
    )
    if not rows:
        return []
    from rookery.agents.pulse import lives

    held = {base for base, pid, start in rows if pid is not None and lives(pid, start)}
    return [base for base in dict.fromkeys(row[0] for row in rows) if base not in held]


def _unseen_turn(ctx: Context) -> int | None:
    """The last turn that has ended, if the radar has not been looked at since and there is more than one agent."""
    found = ctx.db.value(
        "SELECT seq FROM turns WHERE seq > coalesce((SELECT seq FROM radar_seen WHERE one = 1), 0) "
        "AND state <> 'running' AND snapshot IS NOT NULL "
        "AND (SELECT count(*) FROM sessions WHERE state <> 'ended') > 1 ORDER BY seq DESC LIMIT 1"
    )
    return None if found is None else int(found)
