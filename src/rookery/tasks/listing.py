"""Lists, pages and counts of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.tasks import ready, store
from rookery.tasks.model import CANCELLED, COMPLETED, FAILED, IN_PROGRESS, KINDS, PENDING, STATES, Progress, Task

DEFAULT_LIMIT = 200

_JOINS = " LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
_BENEATH = "t.parent_id IN (SELECT :{0} UNION ALL SELECT id FROM tasks WHERE parent_id = :{0})"
_KIND = {
    "epic": "t.parent_id IS NULL",
    "task": "t.parent_id IS NOT NULL AND p.parent_id IS NULL",
    "subtask": "p.parent_id IS NOT NULL",
}
_WAITS = (
    f"({ready.BLOCKED.format(t='t')} OR {ready.BLOCKED.format(t='p')} OR {ready.BLOCKED.format(t='g')})"
    f" AND {ready.UNFINISHED.format(t='t')}"
)


@dataclass(frozen=True, slots=True)
class Query(Record):
    """Which tasks to list; conditions add up."""

    parent: str | None = None
    epic: str | None = None
    state: str | None = None
    kind: str | None = None
    ready: bool = False
    blocked: bool = False
    open: bool = False
    completed: bool = False
    archived: bool = False
    limit: int = DEFAULT_LIMIT
    """0 for all."""
    cursor: str | None = None
    """The last task of the page before."""


def select(db: Database, query: Query, now: str) -> list[Task]:
    """One page of tasks."""
    where, values = _conditions(db, query, now)
    if query.cursor is not None:
        last = store.find(db, query.cursor)
        where.append("(t.priority, t.created_at, t.id) > (:priority, :created_at, :id)")
        values |= {"priority": last.priority, "created_at": last.created_at, "id": last.id}
    rows = db.all(
        f"{store.SELECT}{_JOINS} WHERE {' AND '.join(where)} ORDER BY {store.ORDER} LIMIT :limit",
        values | {"limit": query.limit or -1},
    )
    return [Task(*row) for row in rows]


def _conditions(db: Database, query: Query, now: str) -> tuple[list[str], dict[str, object]]:
    if query.limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    if query.state is not None and query.state not in STATES:
        raise InvalidInput(f"no state {query.state}", hint="one of " + ", ".join(STATES))
    if query.kind is not None and query.kind not in KINDS:
        raise InvalidInput(f"no kind {query.kind}", hint="one of " + ", ".join(KINDS))
    where = ["t.archived_at IS NOT NULL" if query.archived else "t.archived_at IS NULL"]
    values: dict[str, object] = {}
    if query.parent is not None:
        where.append("t.parent_id = :parent")
        values["parent"] = store.resolve(db, query.parent)
    if query.epic is not None:
        where.append(_BENEATH.format("epic"))
        values["epic"] = store.resolve(db, query.epic)
    if query.state is not None:
        where.append("t.state = :state")
        values["state"] = query.state
    if query.kind is not None:
        where.append(_KIND[query.kind])
    if query.ready:
        where.append(ready.READY)
        values["now"] = now
    if query.blocked:
        where.append(_WAITS)
    if query.open:
        where.append(ready.UNFINISHED.format(t="t"))
    if query.completed:
        where.append("t.state = 'COMPLETED'")
    return where, values


def progress(db: Database, root: str | None, now: str) -> Progress:
    """Counts over the whole project, or over everything beneath a task (over the task itself if it has no children)."""
    inside = "t.archived_at IS NULL"
    if root is not None:
        inside = _BENEATH.format("root")
        if db.value("SELECT 1 FROM tasks WHERE parent_id = ?", (root,)) is None:
            inside = "t.id = :root"
    values: dict[str, object] = {} if root is None else {"root": root}
    states: dict[str, int] = dict(db.all(f"SELECT t.state, count(*) FROM tasks t WHERE {inside} GROUP BY 1", values))
    count = f"SELECT count(*) FROM tasks t{_JOINS} WHERE {inside} AND "
    total, completed, cancelled = sum(states.values()), states.get(COMPLETED, 0), states.get(CANCELLED, 0)
    wanted = total - cancelled
    return Progress(
        total=total,
        completed=completed,
        cancelled=cancelled,
        failed=states.get(FAILED, 0),
        in_progress=states.get(IN_PROGRESS, 0),
        in_review=total - sum(states.get(each, 0) for each in _COUNTED_APART),
        pending=states.get(PENDING, 0),
        ready=db.value(count + ready.READY, values | {"now": now}),
        blocked=db.value(count + _WAITS, values),
        percent=100 * completed // wanted if wanted else 100 if total else 0,
    )


_COUNTED_APART = (COMPLETED, CANCELLED, FAILED, IN_PROGRESS, PENDING)
