"""What can be worked on now.

A task is *ready* if nobody holds it, none of its children is unfinished, neither it nor anything above it waits for a
blocker, and everything above it is active. `next_ready` walks depth first: roots, then children, urgent first, then
old first.
"""

from __future__ import annotations

from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import IN_PROGRESS, PENDING, Task

# `{t}` is the alias of the task that is asked about.
BLOCKED = (
    "EXISTS (SELECT 1 FROM task_blockers b JOIN tasks w ON w.id = b.blocker_id "
    "WHERE b.task_id = {t}.id AND w.state <> 'COMPLETED')"
)
AVAILABLE = "({t}.state = 'PENDING' OR ({t}.state = 'IN_PROGRESS' AND {t}.lease_until <= :now))"
HAS_UNFINISHED_CHILD = (
    "EXISTS (SELECT 1 FROM tasks c WHERE c.parent_id = {t}.id "
    "AND c.state NOT IN ('COMPLETED', 'CANCELLED') AND c.archived_at IS NULL)"
)
UNFINISHED = "{t}.state NOT IN ('COMPLETED', 'CANCELLED') AND {t}.archived_at IS NULL"
ACTIVE = "{t}.state IN ('PENDING', 'IN_PROGRESS') AND {t}.archived_at IS NULL"

READY = (
    f"{UNFINISHED} AND {AVAILABLE} AND NOT {HAS_UNFINISHED_CHILD} AND NOT {BLOCKED}".format(t="t")
    + f" AND (t.parent_id IS NULL OR ({ACTIVE} AND NOT {BLOCKED}".format(t="p")
    + f" AND (p.parent_id IS NULL OR ({ACTIVE} AND NOT {BLOCKED}))))".format(t="g")
)
"""The whole definition as a condition over t, its parent p and its grandparent g, for lists and counts."""

_CANDIDATES = (
    f"{store.SELECT_COLUMNS}, {HAS_UNFINISHED_CHILD} AS is_parent FROM tasks t WHERE t.parent_id IS :parent "
    f"AND {UNFINISHED} AND {ACTIVE} AND ({AVAILABLE} OR {HAS_UNFINISHED_CHILD}) AND NOT {BLOCKED} "
    f"ORDER BY {store.ORDER}"
).format(t="t")
"""What may be taken, or lead to something that may: what others hold is passed over where it is found."""


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
