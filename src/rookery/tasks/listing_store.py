"""What can be worked on now; lists, pages and counts of tasks.

A task is *ready* if no agent holds it, none of its children is unfinished, neither it nor anything above it waits for a
blocker, and everything above it is active. `next_ready` walks depth first: roots, then children, urgent first, then
old first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.errors import InvalidInput
from rookery.base.page import rows_for
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import in_chunks
from rookery.tasks import store
from rookery.tasks.model import ACTIVE, CANCELLED, COMPLETED, FAILED, IN_PROGRESS, PENDING, Progress, Task

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
"""What may be taken, or lead to something that may: what other agents hold is left out."""

_JOINS = " LEFT JOIN tasks p ON p.id = t.parent_id LEFT JOIN tasks g ON g.id = p.parent_id"
_UNDER = "t.parent_id IN (SELECT :{0} UNION ALL SELECT id FROM tasks WHERE parent_id = :{0})"
_AFTER_CURSOR = (
    "(t.priority, t.created_at, t.id) > (SELECT c.priority, c.created_at, c.id FROM tasks c WHERE c.id = :cursor)"
)
_KIND = {
    "epic": "t.parent_id IS NULL",
    "task": "t.parent_id IS NOT NULL AND p.parent_id IS NULL",
    "subtask": "p.parent_id IS NOT NULL",
}
_WAITS = (
    f"({_BLOCKED.format(t='t')} OR {_BLOCKED.format(t='p')} OR {_BLOCKED.format(t='g')})"
    f" AND {_UNFINISHED.format(t='t')}"
)

_COUNTS = (
    "WITH blocked (id) AS MATERIALIZED (SELECT DISTINCT b.task_id FROM tasks w "
    "CROSS JOIN task_blockers b ON b.blocker_id = w.id WHERE w.state <> 'COMPLETED'), "
    "unfinished AS MATERIALIZED (SELECT t.id, t.state, t.lease_until, t.parent_id, p.parent_id AS above, "
    f"p.id IS NULL OR ({_ACTIVE}) AS is_led, ".format(t="p")
    + "t.id IN blocked OR coalesce(t.parent_id IN blocked, 0) OR coalesce(p.parent_id IN blocked, 0) AS waits "
    f"FROM tasks t LEFT JOIN tasks p ON p.id = t.parent_id WHERE {_UNFINISHED}) ".format(t="t")
    + "SELECT (SELECT count(*) FROM unfinished WHERE waits), (SELECT count(*) FROM unfinished t "
    f"LEFT JOIN tasks g ON g.id = t.above WHERE NOT waits AND is_led AND {_AVAILABLE} ".format(t="t")
    + f"AND (g.id IS NULL OR ({_ACTIVE})) ".format(t="g")
    + "AND t.id NOT IN (SELECT parent_id FROM unfinished WHERE parent_id IS NOT NULL))"
)
"""How many wait and how many are ready in the whole project, by the same definitions: what is blocked is found once."""


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
    """One page of tasks, and the first one after it."""
    if query.limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    values: dict[str, object] = {"now": now, "state": query.state, "limit": rows_for(query.limit)}
    for name in ("parent", "epic", "cursor"):
        if getattr(query, name) is not None:
            values[name] = store.resolve(db, getattr(query, name))
    conditions = {
        "t.parent_id = :parent": query.parent is not None,
        _UNDER.format("epic"): query.epic is not None,
        "t.state = :state": query.state is not None,
        _KIND[query.kind or "epic"]: query.kind is not None,
        _READY: query.ready,
        _WAITS: query.blocked,
        _UNFINISHED.format(t="t"): query.open,
        "t.state = 'COMPLETED'": query.completed,
        _AFTER_CURSOR: query.cursor is not None,
        "t.archived_at IS NOT NULL": query.archived,
        "t.archived_at IS NULL": not query.archived,
    }
    where = " AND ".join(condition for condition, is_wanted in conditions.items() if is_wanted)
    rows = db.all(f"{store.SELECT}{_JOINS} WHERE {where} ORDER BY {store.ORDER} LIMIT :limit", values)
    return [Task(*row) for row in rows]


def roots(db: Database, limit: int, cursor: str | None) -> list[Task]:
    """So many roots that are not archived, in order, from the first or from the one after the cursor."""
    after = "(t.priority, t.created_at, t.id) > (SELECT priority, created_at, id FROM tasks WHERE id = :cursor)"
    where = "t.parent_id IS NULL AND t.archived_at IS NULL" + (f" AND {after}" if cursor is not None else "")
    sql = f"{store.SELECT} WHERE {where} ORDER BY {store.ORDER} LIMIT :limit"
    return [Task(*row) for row in db.all(sql, {"limit": limit, "cursor": cursor})]


def first_children(db: Database, parent_ids: Iterable[str], limit: int) -> list[Task]:
    """So many children of these tasks: all of the first one, then those of the next, each in order."""
    sql = f"{store.SELECT} WHERE t.parent_id = ? ORDER BY {store.ORDER} LIMIT ?"
    tasks: list[Task] = []
    for parent_id in parent_ids:
        if len(tasks) == limit:
            break
        tasks += [Task(*row) for row in db.all(sql, (parent_id, limit - len(tasks)))]
    return tasks


def count_children(db: Database, ids: Iterable[str]) -> dict[str, int]:
    """How many children each of these tasks has; those without are left out."""
    sql = "SELECT parent_id, count(*) FROM tasks WHERE parent_id IN (%s) GROUP BY parent_id"
    return dict(in_chunks(db, sql, ids))


def count_below(db: Database, task_id: str) -> int:
    """How many tasks are under a task, at any depth."""
    sql = (
        "SELECT (SELECT count(*) FROM tasks WHERE parent_id = ?1) + (SELECT count(*) FROM tasks p "
        "CROSS JOIN tasks c ON c.parent_id = p.id WHERE p.parent_id = ?1)"
    )
    return int(db.value(sql, (task_id,)))


def count_in_trees(db: Database) -> int:
    """How many tasks there are, without the roots that are archived and what is under them."""
    return int(
        db.value(
            "WITH RECURSIVE archived (id) AS (SELECT id FROM tasks WHERE parent_id IS NULL AND archived_at IS NOT NULL "
            "UNION ALL SELECT c.id FROM archived a CROSS JOIN tasks c ON c.parent_id = a.id) "
            "SELECT (SELECT count(*) FROM tasks) - (SELECT count(*) FROM archived)"
        )
    )


def progress(db: Database, root: str | None, now: str) -> Progress:
    """Counts over the whole project, or over everything under a task (over the task itself if it has no children)."""
    inside = "t.archived_at IS NULL"
    if root is not None:
        inside = _UNDER.format("root")
        if db.value("SELECT 1 FROM tasks WHERE parent_id = ?", (root,)) is None:
            inside = "t.id = :root"
    values: dict[str, object] = {} if root is None else {"root": root}
    states: dict[str, int] = dict(db.all(f"SELECT t.state, count(*) FROM tasks t WHERE {inside} GROUP BY 1", values))
    if root is None:
        blocked, ready = db.all(_COUNTS, {"now": now})[0]
    else:
        count = f"SELECT count(*) FROM tasks t{_JOINS} WHERE {inside} AND "
        blocked, ready = db.value(count + _WAITS, values), db.value(count + _READY, values | {"now": now})
    total, completed, cancelled = sum(states.values()), states.get(COMPLETED, 0), states.get(CANCELLED, 0)
    wanted = total - cancelled
    return Progress(
        total=total,
        completed=completed,
        cancelled=cancelled,
        failed=states.get(FAILED, 0),
        in_progress=states.get(IN_PROGRESS, 0),
        in_review=total - sum(states.get(state, 0) for state in _COUNTED_APART),
        pending=states.get(PENDING, 0),
        ready=ready,
        blocked=blocked,
        percent=100 * completed // wanted if wanted else 100 if total else 0,
    )


_COUNTED_APART = (COMPLETED, CANCELLED, FAILED, IN_PROGRESS, PENDING)


def next_ready(db: Database, now: str, root: Task | None = None) -> Task | None:
    """The task to work on next, in the whole project or under (and including) one task."""
    if root is None:
        return _first_leaf(db, now, None)
    line = (root, *store.ancestors(db, root))
    if store.open_blockers(db, [task.id for task in line]):
        return None
    if any(task.state not in ACTIVE or task.archived_at is not None for task in line):
        return None
    if store.has_unfinished_children(db, root.id):
        return _first_leaf(db, now, root.id)
    return root if root.is_available(now) else None


def _first_leaf(db: Database, now: str, parent_id: str | None) -> Task | None:
    # Row by row: the walk usually ends at the first.
    with db.rows(_CANDIDATES, {"parent": parent_id, "now": now}) as rows:
        for *values, is_parent in rows:
            leaf = _first_leaf(db, now, values[0]) if is_parent else Task(*values)
            if leaf is not None:
                return leaf
    return None
