"""A quick look, with every command, for a landing that a kill cut off and for turns whose end the radar has not seen.

It costs one query; only what is really amiss or new loads the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.ops.context import Context


def notice(ctx: Context) -> None:
    """Settle what was left behind, and look at the radar if a turn has ended."""
    cut_off, ended, living = ctx.db.one(
        "SELECT EXISTS (SELECT 1 FROM merges WHERE state IN ('testing', 'landing')) "
        "OR EXISTS (SELECT 1 FROM merges WHERE kind = 'undoing'), "
        "(SELECT max(seq) FROM turns WHERE state <> 'running' AND snapshot IS NOT NULL), "
        "(SELECT count(*) FROM sessions WHERE state <> 'ended')"
    ) or (0, None, 0)
    has_news = living > 1 and ended is not None and _is_unseen(ctx, ended)
    if not cut_off and not has_news:
        return
    from rookery.merge import reaction

    if cut_off:
        reaction.settle(ctx)
    if has_news:
        reaction.look(ctx, ended)


def _is_unseen(ctx: Context, ended: int) -> bool:
    return (ctx.db.value("SELECT seq FROM radar_seen WHERE one = 1") or 0) < ended
