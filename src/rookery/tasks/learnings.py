"""Learnings: what was found out at a task. They go up to its parent when it is completed, each one once."""

from __future__ import annotations

from rookery.base.errors import InvalidInput
from rookery.base.ids import LEARNING, new_id
from rookery.base.text import check_text
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import Learning
from rookery.tasks.store import Author


def add(db: Database, task_id: str, content: str, author: Author, *, source: str | None = None) -> Learning:
    """Keep what was learned at a task; the source is the task that it came from, if it is another one."""
    check_text("the learning", content)
    if not content.strip():
        raise InvalidInput("the learning is empty", hint="say in a sentence what was found out")
    with db.write():
        return store.insert_learning(db, Learning(new_id(LEARNING), task_id, content, source, author.now), author)


def hand_up(db: Database, task_id: str, parent_id: str, author: Author) -> None:
    """Give a task's learnings to its parent; each keeps its first source."""
    for learning in store.learnings(db, [task_id]).get(task_id, ()):
        add(db, parent_id, learning.content, author, source=learning.source_task_id or task_id)
