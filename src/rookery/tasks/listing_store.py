"""What can be worked on now; lists, pages and counts of tasks.

A task is *ready* if nobody holds it, none of its children is unfinished, neither it nor anything above it waits for a
blocker, and everything above it is active. `next_ready` walks depth first: roots, then children, urgent first, then
old first.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import CANCELLED, COMPLETED, FAILED, IN_PROGRESS, KINDS, PENDING, STATES, Progress, Task

DEFAULT_LIMIT = 200

# `{t}` is the alias of the task that is asked about.
_BLOCKED = (
    "EXISTS (SELECT 1 FROM task_blockers b JOIN tasks w ON w.id = b.blocker_id "
    "WHERE b.task_id = {t}.id AND w.state <> 'COMPLETED')"
)
_AVAILABLE = "({t}.state = 'PENDING' OR ({t}.state = 'IN_PROGRESS' AND {t}.lease_until <= :now))"
_HAS_UNFINISHED_CHILD = (
    "EXISTS (SELECT 1 FROM tasks c WHERE c.parent_id = {t}.id "
    "AND c.state NOT IN ('COMPLETED', 'CANCELLED') AND c.archived_at IS NULL)"
)
_UNFINISHED = "{t}.state NOT IN ('COMPLETED', 'CANCELLED') AND {t}.archived_at IS NULL"
_ACTIVE = "{t}.state IN ('PENDING', 'IN_PROGRESS') AND {t}.archived_at IS NULL"

_READY = (
    f"{_UNFINISHED} AND {_AVAILABLE} AND NOT {_HAS_UNFINISHED_CHILD} AND NOT {_BLOCKED}".format(t="t")
    + f" AND (t.parent_id IS NULL OR ({_ACTIVE} AND NOT {_BLOCKED}".format(t="p")
    + f" AND (p.parent_id IS NULL OR ({_ACTIVE} AND NOT {_BLOCKED}))))".format(t="g")
)
"""The whole definition as a condition over t, its parent p and its grandparent g, for lists and counts."""

_CANDIDATES = (
    f"{store.SELECT_COLUMNS}, {_HAS_UNFINISHED_CHILD} AS is_parent FROM tasks t WHERE t.parent_id IS :parent "
    f"AND {_UNFINISHED} AND {_ACTIVE} AND ({_AVAILABLE} OR {_HAS_UNFINISHED_CHILD}) AND NOT {_BLOCKED} "
    f"ORDER BY {store.ORDER}"
).format(t="t")
"""What may be taken, or lead to something that may: what others hold is passed over where it is found."""

_JOINS = " LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
_BENEATH = "t.parent_id IN (SELECT :{0} UNION ALL SELECT id FROM tasks WHERE parent_id = :{0})"
_KIND = {
    "epic": "t.parent_id IS NULL",
    "task": "t.parent_id IS NOT NULL AND p.parent_id IS NULL",
    "subtask": "p.parent_id IS NOT NULL",
}
_WAITS = (
    f"({_BLOCKED.format(t='t')} OR {_BLOCKED.format(t='p')} OR {_BLOCKED.format(t='g')})"
    f" AND {_UNFINISHED.format(t='t')}"
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
        where.append(_READY)
        values["now"] = now
    if query.blocked:
        where.append(_WAITS)
    if query.open:
        where.append(_UNFINISHED.format(t="t"))
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
        ready=db.value(count + _READY, values | {"now": now}),
        blocked=db.value(count + _WAITS, values),
        percent=100 * completed // wanted if wanted else 100 if total else 0,
    )


_COUNTED_APART = (COMPLETED, CANCELLED, FAILED, IN_PROGRESS, PENDING)


def next_ready(db: Database, now: str, beneath: Task | None = None) -> Task | None:
    """The task to work on next, in the whole project or beneath (and including) one task."""
    if beneath is None:
        return _first_leaf_beneath(db, now, None)
    line = (beneath, *store.ancestors(db, beneath))
    if any(store.open_blockers(db, [each.id for each in line]).values()):
        return None
    if any(each.state not in (PENDING, IN_PROGRESS) or each.archived_at is not None for each in line):
        return None
    if store.has_unfinished_children(db, beneath.id):
        return _first_leaf_beneath(db, now, beneath.id)
    return beneath if beneath.is_available(now) else None


def _first_leaf_beneath(db: Database, now: str, parent_id: str | None) -> Task | None:
    # Row by row: the walk usually ends at the first.
    with db.rows(_CANDIDATES, {"parent": parent_id, "now": now}) as rows:
        for *values, is_parent in rows:
            if not is_parent:
                return Task(*values)
            found = _first_leaf_beneath(db, now, values[0])
            if found is not None:
                return found
    return None
