"""Whether a look at the facts could lead to anything: few queries, so that most commands do not load the loop."""

from __future__ import annotations

from rookery.config import layout
from rookery.config.environ import now
from rookery.db.database import Database
from rookery.processes import owned
from rookery.processes.holder import is_gone, read
from rookery.processes.locks import is_locked
from rookery.sessions import journal

# Turns end in another order than they begin, so no turn's own number says how far the radar has come. But none is ever
# deleted, and only the last one of a session can be running: that tells how many have ended.
UNSEEN = (
    "SELECT ended FROM (SELECT (SELECT coalesce(max(seq), 0) FROM turns) - (SELECT count(*) FROM sessions s "
    "WHERE s.state <> 'ended' AND 'running' = "
    "(SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1)) AS ended) AS ends "
    "WHERE ended <> coalesce((SELECT seq FROM radar_seen WHERE one = 1), 0) "
    "AND EXISTS (SELECT 1 FROM sessions WHERE state <> 'ended') AND (SELECT max(seq) FROM sessions) > 1"
)
"""How many turns have ended, if the radar has seen fewer."""
_NEEDED = (
    "SELECT EXISTS (SELECT 1 FROM sessions WHERE state NOT IN ('waiting', 'ended')) "
    "OR EXISTS (SELECT 1 FROM sessions WHERE state = 'ended' AND swept_at IS NULL) "
    "OR EXISTS (SELECT 1 FROM sessions s WHERE s.state = 'waiting' AND (s.reason IS NOT NULL OR 'lost' = "
    "(SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1) "
    "OR EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL AND m.turn_id IS NULL "
    "AND (s.mode = 'headless' OR m.seq > s.nudged)))) "
    "OR EXISTS (SELECT 1 FROM merge_leases WHERE holder IS NOT NULL) "
    "OR EXISTS (SELECT 1 FROM merges WHERE state IN ('testing', 'landing') OR kind = 'undoing') "
    "OR EXISTS (SELECT 1 FROM merges WHERE state = 'landed' AND followed_at IS NULL) "
    "OR EXISTS (SELECT 1 FROM cleanings) "
    "OR EXISTS (SELECT 1 FROM identities_due) "
    f"OR EXISTS ({UNSEEN})"
)


def is_needed(root: str, db: Database) -> bool:
    """True if no process runs the loop, and it could have something to do."""
    return not is_locked(layout.path(root, layout.LOOP_LOCK)) and (
        may_have_work(db) or _has_ended_job(root) or _has_left_folder(root)
    )


def may_have_work(db: Database) -> bool:
    """True if an agent is not at rest, or something is left of one or of a landing."""
    if db.value(_NEEDED):
        return True
    terminals = db.all(
        "SELECT runner_pid, runner_start FROM sessions WHERE state <> 'ended' AND mode = 'tmux' "
        "AND runner_pid IS NOT NULL"
    )
    return any(is_gone(read(pid, start)) for pid, start in terminals)


def is_anything_alive(root: str, db: Database) -> bool:
    """True if something is alive or due that wants a loop, also where nothing is to be done at this moment.

    An agent that waits without mail wants none, unless it is a program in a terminal, which may end.
    """
    in_terminals = "SELECT 1 FROM sessions WHERE state <> 'ended' AND mode = 'tmux' LIMIT 1"
    return may_have_work(db) or bool(db.value(in_terminals)) or bool(journal.jobs(root))


def _has_ended_job(root: str) -> bool:
    return any(not journal.is_running(root, name) for name in journal.jobs(root))


def _has_left_folder(root: str) -> bool:
    top = layout.path(root, layout.SCRATCH)
    return any(owned.is_left(f"{top}/{name}", now()) for name in owned.names(top))
