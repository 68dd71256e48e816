"""What the doctor asks of tasks."""

from __future__ import annotations

from rookery.base.check import ERROR, OK, Finding, Place
from rookery.base.errors import StorageFailed
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.tasks.history import agrees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CATEGORY = "tasks"


def check_history(place: Place) -> Iterator[Finding]:
    """The events tell the same story as the tables."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
    except StorageFailed:
        return  # the database's own check says so
    try:
        if agrees(db):
            count = db.value("SELECT count(*) FROM tasks")
            yield Finding(_CATEGORY, "history", OK, f"the events tell the state of {count} tasks")
        else:
            yield Finding(
                _CATEGORY,
                "history",
                ERROR,
                "the events do not lead to the state that is stored",
                "something else wrote to the database; `rook data export` keeps what is there",
            )
    finally:
        db.close()


CHECKS = (check_history,)
