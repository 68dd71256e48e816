"""What happens to a task at work: claimed, released, completed, reopened, cancelled, failed, archived.

Every step is checked against the table of transitions under the write lock. An agent that lost its lease to another is
fenced: what it still wants to change is refused, and its work stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rookery.base.clock import seconds_of, stamp
from rookery.base.errors import InvalidState
from rookery.base.text import check_text, in_words
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.tasks import learnings, listing_store, store
from rookery.tasks.assembly import assemble_one
from rookery.tasks.model import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    IN_PROGRESS,
    IN_REVIEW,
    AlreadyClaimed,
    NotReady,
    PendingChildren,
    Task,
    TaskView,
    next_state,
)
from rookery.tasks.reviews import store as reviews
from rookery.tasks.store import Author

NO_ONE: dict[str, Any] = {"assignee": None, "lease_until": None}


def claim(db: Database, author: Author, *, lease: float, clock: float, epic: str | None = None) -> TaskView | None:
    """Take the next ready task for the author, for as long as the lease; None if nothing is ready."""
    with db.write():
        root = None if epic is None else store.find(db, epic)
        task = listing_store.next_ready(db, author.now, root)
        if task is None:
            return None
        task = begin(db, task, "claim", author, assignee=author.name, lease_until=stamp(clock + lease))
        return assemble_one(db, task)


def begin(db: Database, task: Task, step: str, author: Author, **holder: Any) -> Task:
    """Give a task to an agent, by `claim` or `start`: one more attempt, which fences all earlier ones."""
    started_at = task.started_at or author.now
    return store.take_step(db, task, step, author, attempts=task.attempts + 1, started_at=started_at, **holder)


def renew(db: Database, text: str, author: Author, *, lease: float, clock: float) -> TaskView:
    """Hold a claimed task for longer."""
    with db.write():
        task = store.find(db, text)
        if task.state != IN_PROGRESS:
            raise InvalidState(
                f"{task.id} is {in_words(task.state)}, not claimed", hint="`rook task claim` takes a task"
            )
        check_holder(task, author)
        return assemble_one(db, store.change(db, task, "task.renewed", author, lease_until=stamp(clock + lease)))


def set_back_leases(db: Database, seconds: float, author: Author) -> None:
    """Let every lease run out so many seconds earlier: the clock was set back."""
    for task in store.in_states(db, IN_PROGRESS):
        if task.lease_until is not None:
            lease_until = stamp(seconds_of(task.lease_until) - seconds)
            store.change(db, task, "task.renewed", author, lease_until=lease_until)


def release(db: Database, text: str, author: Author) -> TaskView:
    """Give a task back for others to take."""
    return _let_go(db, text, "release", author)


def fail(db: Database, text: str, author: Author, *, reason: str | None = None) -> TaskView:
    """Record that a task could not be done. It stays open for its parent until it is reopened or cancelled."""
    check_text("the reason", reason or "")
    return _let_go(db, text, "fail", author, result=reason)


def _let_go(db: Database, text: str, step: str, author: Author, **changes: Any) -> TaskView:
    """Take a step after which no agent holds the task any more."""
    with db.write():
        task = store.find(db, text)
        next_state(step, task)
        check_holder(task, author)
        return assemble_one(db, store.take_step(db, task, step, author, **changes, **NO_ONE))


def submit(
    db: Database,
    task: Task,
    author: Author,
    *,
    commit: str | None,
    result: str | None = None,
    learned: Sequence[str] = (),
) -> Task:
    """Hand a task's work in for review."""
    check_text("the result", result or "")
    with db.write():
        for content in learned:
            learnings.add(db, task.id, content, author)
        changes: dict[str, Any] = {} if result is None else {"result": result}
        task = store.take_step(db, task, "submit", author, lease_until=None, commit=commit, **changes)
        reviews.add(db, task, reviews.SUBMITTED, author, commit=commit)
        return task


def check_completable(
    db: Database, task: Task, author: Author, attempt: int | None = None, *, has_landed: bool = False
) -> None:
    """Everything that `complete` can be refused for, but for what git says, before anything is done.

    What has landed needs no review any more.
    """
    if not (has_landed and task.state in IN_REVIEW):
        next_state("complete", task)
    check_holder(task, author, attempt)
    check_children(db, task)
    check_unblocked(db, task)


def check_children(db: Database, task: Task) -> None:
    """Everything under the task is finished."""
    if store.has_unfinished_children(db, task.id):
        raise PendingChildren(
            f"{task.id} has children that are not finished", hint=f"`rook task tree {task.id}` shows them"
        )


def complete(
    db: Database,
    text: str,
    author: Author,
    *,
    attempt: int | None = None,
    result: str | None = None,
    learned: Sequence[str] = (),
    commit: str | None = None,
    has_landed: bool = False,
    cleared: Collection[str] = (),
) -> TaskView:
    """Finish a task, hand its learnings up, and finish every parent that has nothing left to wait for.

    The caller has found out that its base has its work (`landed`): no git is asked here. `has_landed` says that there
    was some. A parent with a branch is finished only if `cleared` names it.
    """
    check_text("the result", result or "")
    with db.write():
        task = store.find(db, text)
        check_completable(db, task, author, attempt, has_landed=has_landed)
        for content in learned:
            learnings.add(db, task.id, content, author)
        changes: dict[str, Any] = {} if commit is None else {"commit": commit}
        if task.state in IN_REVIEW:
            task = store.take_step(db, task, "approve landed", author, **changes)
            result = task.result if result is None else result
        return assemble_one(db, _finish(db, task, author, cleared, result=result, **changes))


def complete_landed(db: Database, task: Task, author: Author, *, commit: str, cleared: Collection[str] = ()) -> str:
    """Finish a task whose work is on the base, even if something still blocked it; returns what did.

    A blocker keeps work from beginning. Work that has landed is done; that it came too early is noted in its result.
    """
    with db.write():
        check_children(db, task)
        blockers = [blocker for blockers in _open_blockers(db, task).values() for blocker in blockers]
        waited = f"it waited for {_with_states(db, blockers)}" if blockers else ""
        note = f"It has landed although {waited}." if waited else ""
        if task.state in IN_REVIEW:
            task = store.take_step(db, task, "approve landed", author, commit=commit)
        result = "\n\n".join(part for part in (task.result, note) if part) or None
        _finish(db, task, author, cleared, result=result, commit=commit)
    return waited


def reopen(db: Database, text: str, author: Author) -> TaskView:
    """Reopen a finished or failed task, together with the completed tasks above it."""
    with db.write():
        task = store.find(db, text)
        cleared = {"completed_at": None, "result": None, **NO_ONE}
        opened = [store.take_step(db, one, "reopen", author, **cleared) for one in to_reopen(db, task)]
        return assemble_one(db, opened[0])


def to_reopen(db: Database, task: Task) -> tuple[Task, ...]:
    """A task and the completed ones above it, which are reopened with it; raises why it cannot be."""
    next_state("reopen", task)
    above = store.ancestors(db, task)
    for archived in (task, *above):
        if archived.archived_at is not None:
            raise InvalidState(f"{archived.id} is archived", hint=f"`rook task unarchive {archived.id}` first")
    for one in above:
        if one.state == CANCELLED:
            raise InvalidState(f"{one.id} above it is cancelled", hint=f"`rook task reopen {one.id}` first")
    return (task, *(one for one in above if one.state == COMPLETED))


def cancel(
    db: Database, text: str, author: Author, *, reason: str | None = None, cleared: Collection[str] = ()
) -> TaskView:
    """Cancel a task, and everything unfinished under it; `cleared` as in `complete`."""
    check_text("the reason", reason or "")
    with db.write():
        task = store.find(db, text)
        next_state("cancel", task)
        for below in reversed(store.descendants(db, task.id)):
            if not below.is_finished:
                store.take_step(db, below, "cancel", author, result=reason, **NO_ONE)
        task = store.take_step(db, task, "cancel", author, result=reason, **NO_ONE)
        _finish_parents(db, task, author, cleared)
        return assemble_one(db, task)


def archive(db: Database, text: str, author: Author) -> TaskView:
    """Put a finished task away, with everything under it."""
    with db.write():
        task = store.find(db, text)
        if not task.is_finished:
            raise InvalidState(f"{task.id} is {in_words(task.state)}", hint="complete or cancel it first")
        if task.archived_at is not None:
            raise InvalidState(f"{task.id} is archived already", hint=f"`rook task unarchive {task.id}` brings it back")
        return _set_archived(db, task, "task.archived", author, author.now)


def unarchive(db: Database, text: str, author: Author) -> TaskView:
    """Bring a task back, with everything under it."""
    with db.write():
        task = store.find(db, text)
        if task.archived_at is None:
            raise InvalidState(f"{task.id} is not archived", hint="`rook task list --archived` shows what is")
        for above in store.ancestors(db, task):
            if above.archived_at is not None:
                raise InvalidState(f"{above.id} above it is archived", hint=f"`rook task unarchive {above.id}`")
        return _set_archived(db, task, "task.unarchived", author, None)


def _set_archived(db: Database, task: Task, kind: str, author: Author, at: str | None) -> TaskView:
    for below in store.descendants(db, task.id):
        if (below.archived_at is None) != (at is None):
            store.change(db, below, kind, author, archived_at=at)
    return assemble_one(db, store.change(db, task, kind, author, archived_at=at))


def check_holder(task: Task, author: Author, attempt: int | None = None) -> None:
    """An agent speaks only for what it holds; a person may speak for anything."""
    hint = "your commits stay on the branch; take another task"
    if attempt is not None and attempt != task.attempts:
        holder = f"{task.assignee} holds" if task.assignee else "no agent holds"
        raise AlreadyClaimed(f"attempt {attempt} at {task.id} is over; {holder} attempt {task.attempts}", hint=hint)
    if author.name != HUMAN and task.assignee not in (None, author.name):
        raise AlreadyClaimed(f"{task.id} is held by {task.assignee}, not by {author.name}", hint=hint)


def check_unblocked(db: Database, task: Task) -> None:
    """Neither the task nor anything above it waits for a blocker."""
    for waiting, blockers in _open_blockers(db, task).items():
        raise NotReady(
            f"{waiting} waits for {_with_states(db, blockers)}",
            hint="finish the blockers first, or `rook task unblock`; a cancelled blocker still blocks",
        )


def _open_blockers(db: Database, task: Task) -> dict[str, list[str]]:
    """For the task and everything above it: the blockers that are not completed."""
    return store.open_blockers(db, [waiting.id for waiting in (task, *store.ancestors(db, task))])


def _with_states(db: Database, ids: Iterable[str]) -> str:
    return ", ".join(f"{task.id} ({in_words(task.state)})" for task in store.get_many(db, ids).values())


def _finish(db: Database, task: Task, author: Author, cleared: Collection[str], **changes: Any) -> Task:
    """Complete a task, and then every parent that has nothing left to wait for."""
    finished = store.take_step(db, task, "complete", author, completed_at=author.now, lease_until=None, **changes)
    if task.parent_id is not None:
        learnings.hand_up(db, task.id, task.parent_id, author)
    _finish_parents(db, finished, author, cleared)
    return finished


def _finish_parents(db: Database, child: Task, author: Author, cleared: Collection[str]) -> None:
    """Complete the parent of a finished task, unless it has open children or blockers, is held, or nothing got done.

    One with a branch may have work there that has not landed: it is completed only if `cleared` names it.
    """
    if child.parent_id is None:
        return
    parent = store.get(db, child.parent_id)
    if parent.state not in ACTIVE or parent.is_held(author.now) or store.has_unfinished_children(db, parent.id):
        return
    if parent.branch is not None and parent.id not in cleared:
        return
    has_result = any(sibling.state == COMPLETED for sibling in store.children(db, parent.id))
    if has_result and not _open_blockers(db, parent):
        _finish(db, parent, author, cleared)
