"""Learnings: what was found out at a task. They go up to its parent when it is completed, each one once."""

from __future__ import annotations

from rookery.base.errors import InvalidInput
from rookery.base.ids import LEARNING, new_id
from rookery.base.text import check_text
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import Learning
from rookery.tasks.service import check_query
from rookery.tasks.store import Author


def add(db: Database, task: str, content: str, author: Author, *, source: str | None = None) -> Learning:
    """Keep what was learned at a task."""
    with db.write():
        origin = None if source is None else store.resolve(db, source)
        return keep(db, store.resolve(db, task), content, origin, author)


def keep(db: Database, task_id: str, content: str, source: str | None, author: Author) -> Learning:
    """Keep a learning within the caller's transaction."""
    check_text("the learning", content)
    if not content.strip():
        raise InvalidInput("the learning is empty", hint="say in a sentence what was found out")
    learning = Learning(new_id(LEARNING), task_id, content, source, author.now)
    return store.insert_learning(db, learning, author)


def hand_up(db: Database, task_id: str, parent_id: str, author: Author) -> None:
    """Give a task's learnings to its parent; each keeps its first source."""
    for learning in store.learnings(db, [task_id]).get(task_id, ()):
        keep(db, parent_id, learning.content, learning.source_task_id or task_id, author)


def list_of(db: Database, task: str) -> list[Learning]:
    """A task's own learnings, oldest first."""
    with db.read():
        task_id = store.resolve(db, task)
        return store.learnings(db, [task_id]).get(task_id, [])


def search(db: Database, query: str, limit: int) -> list[Learning]:
    """Learnings that hold every word, the best first."""
    check_query(query)
    return store.search_learnings(db, query, limit)


def delete(db: Database, text: str, author: Author) -> Learning:
    """Forget a learning, and return what it was."""
    with db.write():
        learning = store.get_learning(db, store.resolve_learning(db, text))
        store.delete_learning(db, learning.id, author)
        return learning
