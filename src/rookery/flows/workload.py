"""Whether the loop could have anything to do: few queries, so that most commands do not load the loop."""

from __future__ import annotations

from rookery.base.clock import is_future
from rookery.config import layout
from rookery.config.environ import now
from rookery.db.database import Database
from rookery.events.store import latest_time
from rookery.flows import store
from rookery.processes import owned_folders
from rookery.processes.holder import is_gone, read
from rookery.processes.locks import is_locked
from rookery.runtimes.model import TMUX
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.upkeep.due import is_due


def is_needed(root: str, db: Database) -> bool:
    """True if no process runs the loop, and it could have something to do."""
    return not is_locked(layout.path(root, layout.LOOP_LOCK)) and (
        may_have_work(db)
        or _has_ended_job(root)
        or _has_left_folder(root)
        or is_future(latest_time(db), now())
        or is_due(root, now())
    )


def may_have_work(db: Database) -> bool:
    """True if an agent is not at rest, or a kill may have left something of an agent or of a landing."""
    return store.may_have_work(db) or any(
        is_gone(read(session.runner_pid, session.runner_start)) for session in _in_terminals(db) if session.runner_pid
    )


def is_anything_alive(root: str, db: Database) -> bool:
    """True if something is alive or due that needs a loop, also if there is nothing to do right now.

    An agent that waits without mail needs none, unless it is a program in a terminal, which may end.
    """
    return may_have_work(db) or bool(_in_terminals(db)) or bool(journal.jobs(root))


def _in_terminals(db: Database) -> list[Session]:
    return sessions.sessions(db, alive=True, mode=TMUX)


def _has_ended_job(root: str) -> bool:
    return any(not journal.is_running(root, name) for name in journal.jobs(root))


def _has_left_folder(root: str) -> bool:
    top = layout.path(root, layout.SCRATCH)
    return any(owned_folders.is_left(f"{top}/{name}", now()) for name in owned_folders.names(top))
