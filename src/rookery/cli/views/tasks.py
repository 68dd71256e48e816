"""How tasks look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rookery.base.ids import handle
from rookery.base.page import Page
from rookery.base.text import in_words, one_line, plural
from rookery.cli.document import Block, Cell, Fields, Paragraph, Span, Table, Tree, line, moment, named, next_page, text
from rookery.tasks.model import (
    APPROVED,
    AWAITING_HUMAN_REVIEW,
    CANCELLED,
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    NEEDS_REBASE,
    PENDING,
    PENDING_REVIEW,
    Deleted,
    Progress,
    TaskTree,
    TaskView,
)
from rookery.tasks.scope.outside import describe_files

_MARKS: dict[str, Span] = {
    PENDING: ("○", ""),
    IN_PROGRESS: ("◐", "busy"),
    PENDING_REVIEW: ("◇", "note"),
    NEEDS_REBASE: ("◇", "busy"),
    APPROVED: ("◆", "good"),
    AWAITING_HUMAN_REVIEW: ("◇", "note"),
    COMPLETED: ("●", "good"),
    CANCELLED: ("⊘", "dim"),
    FAILED: ("✕", "bad"),
}
_TITLE_WIDTH = 100
_BAR_WIDTH = 30


def one(view: TaskView, _values: dict[str, Any]) -> Iterator[Block]:
    """A task at length."""
    task = view.task
    fields: dict[str, Cell] = {
        "id": named(task.id),
        "kind": view.kind,
        "state": line(_state(view), *_waiting(view)),
        "priority": task.priority,
        "parent": named(task.parent_id),
        "blocked by": (", ".join(map(handle, view.blocked_by)), "id"),
        "blocks": (", ".join(map(handle, view.blocks)), "id"),
        "assignee": _holder(view),
        "branch": task.branch,
        "started from": task.start_commit,
        "commit": task.commit,
        "result": one_line(task.result or ""),
        "other files": "; ".join(describe_files(view.outside)),
        "archived": moment(task.archived_at),
    }
    yield Paragraph([line(_MARKS[task.state], " ", (one_line(task.title), "title"))])
    yield Fields(fields)
    contexts = (task.context, *(above.context for above in view.ancestors))
    texts = {"description": task.description, "design": task.design}
    texts |= zip(("context", "parent's context", "epic's context"), contexts, strict=False)
    for name, content in texts.items():
        if content:
            yield text(name, "dim")
            yield text(content, indent=2)
    for owner, learnings in zip(("learnings", "parent's learnings", "epic's learnings"), view.learnings, strict=True):
        if learnings:
            yield text(owner, "dim")
            yield from (text(f"- {learning.content}", indent=2) for learning in learnings)


def offer(view: TaskView | None, values: dict[str, Any]) -> Iterable[Block]:
    """A task to work on, if there is one."""
    if view is None:
        return [
            text("No task is ready. `rook task list --open` shows the tasks that are in progress or blocked.", "dim")
        ]
    return one(view, values)


def table(views: list[TaskView], values: dict[str, Any]) -> list[Block]:
    """Tasks in a table, grouped by epic unless `flat` is set."""
    grouped = "flat" in values or "parent" in values
    shown = views if not grouped or values.get("flat") else _by_epic(views)
    rows = [
        (
            named(view.task.id),
            view.task.priority,
            line(_MARKS[view.task.state], " ", _state(view)),
            line(
                "  " * (view.depth if shown is not views else 0),
                one_line(view.task.title),
                *_waiting(view),
            ),
        )
        for view in shown
    ]
    return [Table(("id", "pri", "state", "title"), rows, empty="No tasks."), *next_page(views)]


def tree(trees: TaskTree | Page[TaskTree], values: dict[str, Any]) -> Iterator[Block]:
    """Tasks as trees, and how to see what is left out."""
    page = trees if isinstance(trees, Page) else Page([trees])
    if not page and not values.get("cursor"):
        yield text('No tasks yet: `rook epic create "…"` makes the first.', "dim")
    yield from map(_branch, page)
    left_out = page.left_out or sum(root.left_out for root in page)
    if not values.get("all") and (left_out or page.next):
        more = f"and {left_out:,} more" if left_out else "and more"
        go_on = f"; --cursor {handle(page.next)} goes on after these" if page.next else ""
        yield text(f"{more}: --all shows everything{go_on}", "dim")


def progress(counts: Progress, _values: dict[str, Any]) -> list[Block]:
    """A bar and the counts behind it."""
    full = _BAR_WIDTH * counts.percent // 100
    bar = line(("█" * full, "good"), ("░" * (_BAR_WIDTH - full), "dim"), f" {counts.percent} %")
    counts_by_state = {in_words(name): value for name, value in counts.as_dict().items() if name != "percent"}
    return [Paragraph([bar]), Fields(counts_by_state)]


def deleted(result: Deleted, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [Paragraph([line("deleted ", named(task_id)) for task_id in result.deleted])]


def _branch(node: TaskTree) -> Tree:
    view = node.task
    label = line(
        _MARKS[view.task.state],
        " ",
        (one_line(view.task.title, _TITLE_WIDTH), "title" if view.depth == 0 else ""),
        *_waiting(view),
        ("  " + handle(view.task.id), "dim"),
        *([(f"  {_holder(view)}", "busy")] if view.task.state == IN_PROGRESS else []),
        (f"  {node.left_out:,} more under it" if node.left_out else "", "dim"),
    )
    return Tree(label, [_branch(child) for child in node.children])


def _by_epic(views: list[TaskView]) -> list[TaskView]:
    """Children right after their parents, where both are in the list."""
    listed = {view.task.id for view in views}
    children: dict[str | None, list[TaskView]] = {}
    for view in views:
        parent = view.task.parent_id if view.task.parent_id in listed else None
        children.setdefault(parent, []).append(view)
    ordered: list[TaskView] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        view = waiting.pop()
        ordered.append(view)
        waiting += children.get(view.task.id, [])[::-1]
    return ordered


def _state(view: TaskView) -> str:
    return in_words(view.task.state)


def _waiting(view: TaskView) -> list[Span]:
    if not view.is_blocked or view.task.is_finished:
        return []
    return [(f"  blocked by {plural(len(view.waits_for), 'task')}", "busy")]


def _holder(view: TaskView) -> str:
    task = view.task
    if task.assignee is None:
        return ""
    return task.assignee + (f" (lease ends {moment(task.lease_until)})" if task.lease_until else "")
