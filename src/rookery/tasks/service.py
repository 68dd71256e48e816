"""Planning: make, change, connect, find and delete tasks. What happens to them at work is in `lifecycle`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import InvalidInput, InvalidState, NotFound
from rookery.base.ids import TASK, new_id
from rookery.base.page import Page
from rookery.base.record import Record
from rookery.base.text import check_text, check_title, in_words
from rookery.db.database import Database
from rookery.tasks import graph, listing_store, store
from rookery.tasks.assembly import assemble, assemble_one
from rookery.tasks.model import (
    DEFAULT_PRIORITY,
    PENDING,
    BlockerNotFound,
    ParentNotFound,
    Progress,
    Task,
    TaskTree,
    TaskView,
    check_priority,
)
from rookery.tasks.store import Author


@dataclass(frozen=True, slots=True)
class Draft(Record):
    """The words and the place of a new task."""

    title: str
    description: str = ""
    context: str = ""
    design: str = ""
    parent: str | None = None
    priority: int = DEFAULT_PRIORITY
    blocked_by: tuple[str, ...] = ()


def create(db: Database, draft: Draft, author: Author) -> TaskView:
    """Add a task with its blockers, or nothing."""
    words = {name: getattr(draft, name) for name in ("title", "description", "context", "design", "priority")}
    _check_words(words)
    with db.write():
        parent = None if draft.parent is None else _find_parent(db, draft.parent)
        if parent is not None:
            graph.check_parent(db, None, parent)
            _check_open(parent)
        known = {
            "id": new_id(TASK),
            "parent_id": None if parent is None else parent.id,
            "state": PENDING,
            "attempts": 0,
            "created_at": author.now,
            "updated_at": author.now,
        }
        task = Task(**{**dict.fromkeys(Task.field_names()), **words, **known})
        store.insert(db, task, author)
        for text in draft.blocked_by:
            _block(db, task, text, author)
        return assemble_one(db, task)


def get(db: Database, text: str) -> TaskView:
    """One task with all that follows from its place."""
    with db.read():
        return assemble_one(db, store.find(db, text))


def update(db: Database, text: str, author: Author, changes: dict[str, Any], *, parent: str | None = None) -> TaskView:
    """Change a task's words, priority or place; `parent` is an id, or "none" for a root."""
    _check_words(changes)
    if not changes and parent is None:
        raise InvalidInput("nothing to change", hint="give at least one of the options")
    with db.write():
        task = store.find(db, text)
        if parent is not None:
            task = _move(db, task, parent, author)
        if changes:
            task = store.change(db, task, "task.updated", author, **changes)
        return assemble_one(db, task)


def _check_words(words: dict[str, Any]) -> None:
    for name, value in words.items():
        if name == "title":
            check_title(value)
        elif name == "priority":
            check_priority(value)
        else:
            check_text(f"the {name}", value)


def block(db: Database, text: str, by: Sequence[str], author: Author) -> TaskView:
    """Let a task wait for others."""
    with db.write():
        task = store.find(db, text)
        for blocker in by:
            _block(db, task, blocker, author)
        return assemble_one(db, task)


def unblock(db: Database, text: str, by: Sequence[str], author: Author) -> TaskView:
    """Let a task no longer wait for others, or (with none named) for any."""
    with db.write():
        task = store.find(db, text)
        named = [_blocker_id(db, blocker) for blocker in by]
        for blocker in named or [*store.blockers(db, [task.id]).get(task.id, ())]:
            if not store.remove_blocker(db, task.id, blocker, author):
                raise BlockerNotFound(
                    f"{task.id} does not wait for {blocker}", hint=f"`rook task get {task.id}` shows what it waits for"
                )
        return assemble_one(db, task)


def delete(db: Database, text: str, author: Author, *, force: bool = False) -> list[str]:
    """Delete a task with everything under it, and return the ids that were deleted."""
    with db.write():
        task = store.find(db, text)
        for held in (task, *store.descendants(db, task.id)):
            if held.is_held(author.now) and not force:
                hint = "`rook task cancel` it, or delete it with --force"
                raise InvalidState(f"{held.assignee} is at work on {held.id}", hint=hint)
        return store.delete(db, task.id, author)


def next_ready(db: Database, now: str, epic: str | None = None) -> TaskView | None:
    """The task to work on next, or None."""
    with db.read():
        root = None if epic is None else store.find(db, epic)
        task = listing_store.next_ready(db, now, root)
        return None if task is None else assemble_one(db, task)


def list_tasks(db: Database, query: listing_store.Query, now: str) -> Page[TaskView]:
    """The tasks that fit, urgent first, then old first."""
    with db.read():
        tasks = listing_store.select(db, query, now)
        shown = tasks[: query.limit or None]
        return Page(assemble(db, shown), shown[-1].id if len(shown) < len(tasks) else None)


def search(db: Database, query: str, limit: int) -> list[TaskView]:
    """Tasks that hold every word, the best first."""
    check_query(query)
    with db.read():
        return assemble(db, store.search(db, query, limit))


def check_query(query: str) -> None:
    """Raise InvalidInput if there is nothing to search for."""
    check_text("the query", query, limit=10_000)
    if not query.strip():
        raise InvalidInput("nothing to search for", hint="give one or more words")


def tree_pages(db: Database, limit: int, cursor: str | None = None) -> Iterator[Page[TaskTree]]:
    """Every root that is not archived with everything under it, in pages of about so many tasks.

    A page holds whole trees; one that is larger than a page is a page by itself.
    """
    last = None if cursor is None else store.resolve(db, cursor)
    while True:
        page = _tree_page(db, limit, last)
        yield page
        last = page.next
        if last is None:
            return


def first_trees(db: Database, limit: int, cursor: str | None = None) -> Page[TaskTree]:
    """The first of these pages. Of a tree that is larger, so many tasks are shown, those closest to the root first."""
    last = None if cursor is None else store.resolve(db, cursor)
    page = _tree_page(db, limit, last, cut=True)
    if cursor is None:
        page.left_out = listing_store.count_in_trees(db) - sum(map(_size, page))
    return page


def tree(db: Database, text: str, limit: int = 0) -> TaskTree:
    """One task with everything under it, or with so many tasks at most, those closest to it first (0 for all)."""
    with db.read():
        root = store.find(db, text)
        return _grow(db, [(root, _below(db, root, limit))])[0]


def _tree_page(db: Database, limit: int, last: str | None, *, cut: bool = False) -> Page[TaskTree]:
    with db.read():
        roots = listing_store.roots(db, limit + 1, last)
        chosen: list[tuple[Task, list[Task]]] = []
        room = limit
        for root in roots:
            size = 1 + listing_store.count_below(db, root.id)
            if chosen and size > room:
                break
            chosen.append((root, _below(db, root, limit if cut else 0)))
            room -= size
        return Page(_grow(db, chosen), chosen[-1][0].id if len(chosen) < len(roots) else None)


def _below(db: Database, root: Task, limit: int) -> list[Task]:
    """What is under a task, parents before children; with a limit, so many tasks with the task itself."""
    if not limit or listing_store.count_below(db, root.id) < limit:
        return store.descendants(db, root.id)
    children = listing_store.first_children(db, [root.id], limit - 1)
    return children + listing_store.first_children(db, [task.id for task in children], limit - 1 - len(children))


def _grow(db: Database, chosen: list[tuple[Task, list[Task]]]) -> list[TaskTree]:
    """The trees of some roots and what is shown under each."""
    views = assemble(db, [task for root, below in chosen for task in (root, *below)])
    children: dict[str, list[TaskView]] = {}
    for view in views:
        children.setdefault(str(view.task.parent_id), []).append(view)
    counts = listing_store.count_children(db, [view.task.id for view in views])
    shown = {view.task.id: view for view in views}
    return [
        _branch(shown[root.id], children, counts).replace(left_out=listing_store.count_below(db, root.id) - len(below))
        for root, below in chosen
    ]


def _size(tree: TaskTree) -> int:
    return 1 + sum(map(_size, tree.children))


def progress(db: Database, text: str | None, now: str) -> Progress:
    """How far the project, or the part under one task, is."""
    with db.read():
        root = None if text is None else store.resolve(db, text)
        return listing_store.progress(db, root, now)


def _branch(view: TaskView, children: dict[str, list[TaskView]], counts: dict[str, int]) -> TaskTree:
    shown = children.get(view.task.id, ())
    left_out = counts.get(view.task.id, 0) - len(shown)
    return TaskTree(view, tuple(_branch(child, children, counts) for child in shown), left_out)


def _find_parent(db: Database, text: str) -> Task:
    try:
        return store.find(db, text)
    except NotFound as error:
        raise ParentNotFound(f"no task {text} to be the parent", hint=error.hint) from error


def _blocker_id(db: Database, text: str) -> str:
    try:
        return store.resolve(db, text)
    except NotFound as error:
        raise BlockerNotFound(f"no task {text} to wait for", hint=error.hint) from error


def _block(db: Database, task: Task, text: str, author: Author) -> None:
    blocker = store.get(db, _blocker_id(db, text))
    if store.add_blocker(db, task.id, blocker.id, author):
        graph.check_blocker(db, task, blocker)


def _move(db: Database, task: Task, parent: str, author: Author) -> Task:
    if parent == "none":
        return store.change(db, task, "task.updated", author, parent_id=None)
    target = _find_parent(db, parent)
    graph.check_parent(db, task, target)
    if not task.is_finished:
        _check_open(target)
    moved = store.change(db, task, "task.updated", author, parent_id=target.id)
    graph.check_move(db, moved, target)
    return moved


def _check_open(parent: Task) -> None:
    """Under finished work everything is finished."""
    if parent.is_finished or parent.archived_at is not None:
        state = "archived" if parent.archived_at is not None else parent.state
        raise InvalidState(f"the parent {parent.id} is {in_words(state)}", hint=f"`rook task reopen {parent.id}` first")
