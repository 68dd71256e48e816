"""Opens a project's state, after `state_owner` has found that it may be used."""

from __future__ import annotations

from rookery.config.project import database_path
from rookery.db.database import Database, is_current
from rookery.ops.location import ensure_here, is_here
from rookery.ops.state_owner import check_owner, check_state, find_indexes, last_answer


def open_state(root: str) -> Database:
    """The database of the project at `root`, if its state may be used."""
    check_state(root)
    return open_here(root)


def open_if_ready(root: str) -> Database | None:
    """The database, if nothing has to be done before it can be used: no question to git, no migration, no settling."""
    check_owner(root)
    if find_indexes(root) and last_answer(root) is None:
        return None
    if not is_current(database_path(root)):
        return None
    db = Database.open(database_path(root))
    if is_here(root, db):
        return db
    db.close()
    return None


def open_here(root: str) -> Database:
    """The database of a project whose state may be used; one that was copied or moved is settled first."""
    db = Database.open(database_path(root))
    try:
        ensure_here(root, db)
    except BaseException:
        db.close()
        raise
    return db
