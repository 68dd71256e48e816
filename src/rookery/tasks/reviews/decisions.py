"""What a reviewer decides of work that was handed in. Each decision is for a commit, and is kept with its comment."""

from __future__ import annotations

from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.base.ids import handle
from rookery.base.text import check_text, is_placeholder
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.lifecycle import NO_ONE
from rookery.tasks.model import APPROVED, IN_PROGRESS, PENDING, Task
from rookery.tasks.reviews import store as reviews
from rookery.tasks.store import Author

MAX_COMMENT = 100_000


def check_comment(comment: str) -> str:
    """The comment itself, if it asks for something."""
    if not comment.strip():
        raise InvalidInput("the comment is empty", hint="say what has to change")
    if is_placeholder(comment):
        raise InvalidInput("the comment is only …, which stands for yours", hint="say what has to change")
    return check_text("the comment", comment.strip(), limit=MAX_COMMENT)


def check_reviewer(task: Task, author: Author) -> None:
    """Raise Refused if an agent would decide about its own work."""
    if author.name != HUMAN and author.name == task.assignee:
        raise Refused(f"{author.name} cannot review its own work", hint="its lead, a reviewer or a person does")


def approve(db: Database, task: Task, author: Author, *, commit: str, comment: str = "") -> Task:
    """The work may land as it is at that commit; one that was approved at another commit is approved again."""
    check_reviewer(task, author)
    if task.state == APPROVED and task.commit == commit:
        raise InvalidState(
            f"{handle(task.id)} is approved already", hint=f"`rook merge --branch {task.branch}` lands it"
        )
    task = store.take_step(db, task, "approve", author, commit=commit)
    reviews.add(db, task, reviews.APPROVED, author, commit=commit, comment=comment)
    return task


def request_changes(
    db: Database, task: Task, author: Author, *, commit: str | None, comment: str, holder: str | None
) -> Task:
    """The work has to change first: `holder` goes on with it or, without one, the task is open for others."""
    check_reviewer(task, author)
    task = store.take_step(db, task, "request changes", author, assignee=holder or task.assignee, lease_until=None)
    if holder is None:
        task = store.take_step(db, task, "release", author, **NO_ONE)
    reviews.add(db, task, reviews.CHANGES_REQUESTED, author, commit=commit, comment=comment)
    return task


def request_rebase(db: Database, task: Task, author: Author, *, commit: str | None, comment: str = "") -> Task:
    """The work has to be brought onto its base as it is now."""
    check_reviewer(task, author)
    task = store.take_step(db, task, "request rebase", author)
    reviews.add(db, task, reviews.REBASE_REQUESTED, author, commit=commit, comment=comment)
    return task


def why_sent_back(db: Database, task: Task) -> str:
    """Why work that was sent back may not land until it is handed in again; empty if it may."""
    if task.state not in (PENDING, IN_PROGRESS):
        return ""
    step = reviews.last(db, task.id)
    if step is None or step.action != reviews.CHANGES_REQUESTED:
        return ""
    return f"{step.actor} asked for changes, and it was not handed in again"


def why_moved(task: Task, tip: str) -> str:
    """Why approved work may not land as its branch is now; empty if it may."""
    if task.state != APPROVED or task.commit is None or task.commit == tip:
        return ""
    return f"it was approved at {task.commit[:12]}, and its branch has moved since"
