"""Shapes that a naive walk would drown in."""

from __future__ import annotations

import os
import random

from bench.in_process import AUTHOR, NOW
from bench.project import COMMON_WORD, Row, Size, create, insert
from bench.table import Table
from bench.timing import compare
from rookery.base.ids import TASK, new_id
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.tasks import service
from rookery.tasks.listing_store import Query

_AIM = 10.0
_EPOCH = 1_700_000_000.0


def measure(root: str, size: Size) -> Table:
    """Many blocked or held roots before the ready one, a long chain of blockers, a word that is everywhere."""
    folder = os.path.dirname(root)
    repeat = max(5, size.repeat // 10)
    blocked = _roots(os.path.join(folder, "blocked"), size.chain, state="PENDING", blocked=True)
    held = _roots(os.path.join(folder, "held"), size.chain, state="IN_PROGRESS", blocked=False)
    chain, links = _chain(os.path.join(folder, "chain"), size.chain)
    full = Database.open(database_path(root))
    figures = (
        compare(
            f"next-ready behind {size.chain:,} blocked roots",
            lambda: service.next_ready(blocked, NOW),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            f"next-ready behind {size.chain:,} held roots",
            lambda: service.next_ready(held, NOW),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            f"list --ready behind {size.chain:,} blocked roots",
            lambda: service.list_tasks(blocked, Query(ready=True), NOW),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            f"a new task at the end of {size.chain:,} blockers",
            lambda: service.create(chain, service.Draft("end", blocked_by=(links[-1],)), AUTHOR),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            f"a new task before the first of {size.chain:,} blockers",
            lambda: _wait_for_new(chain, links[0]),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            "search, a word in every third task",
            lambda: service.search(full, COMMON_WORD, 50),
            None,
            repeat,
            most=_AIM,
        ),
        compare("list --blocked", lambda: service.list_tasks(full, Query(blocked=True), NOW), None, repeat, most=_AIM),
        compare(
            "list --state FAILED",
            lambda: service.list_tasks(full, Query(state="FAILED"), NOW),
            None,
            repeat,
            most=_AIM,
        ),
        compare(
            "list of one epic",
            lambda: service.list_tasks(full, Query(epic=_last_epic(full)), NOW),
            None,
            repeat,
            most=_AIM,
        ),
        compare("progress of everything", lambda: service.progress(full, None, NOW), None, max(3, repeat // 4)),
    )
    for db in (blocked, held, chain, full):
        db.close()
    return Table("Hard cases", "none", figures)


def _wait_for_new(db: Database, first: str) -> None:
    fresh = service.create(db, service.Draft("start"), AUTHOR).task.id
    service.block(db, first, [fresh], AUTHOR)


def _last_epic(db: Database) -> str:
    return str(db.value("SELECT id FROM tasks WHERE parent_id IS NULL ORDER BY priority DESC, id DESC LIMIT 1"))


def _roots(root: str, count: int, *, state: str, blocked: bool) -> Database:
    """Roots that no agent can take, all before the one that can be taken."""
    db = create(root)
    rows = [Row(new_id(TASK, at=_EPOCH + n), None, 1, state, False, _EPOCH + n) for n in range(count)]
    blocker = Row(new_id(TASK, at=_EPOCH), None, 5, "PENDING", False, _EPOCH)
    with db.write():
        insert(db, [*rows, blocker], random.Random(2))
        if blocked:
            db.execute_many("INSERT INTO task_blockers VALUES (?, ?)", [(row.id, blocker.id) for row in rows])
    return db


def _chain(root: str, count: int) -> tuple[Database, list[str]]:
    """Tasks each of which waits for the one before."""
    db = create(root)
    rows = [Row(new_id(TASK, at=_EPOCH + n), None, 3, "PENDING", False, _EPOCH + n) for n in range(count)]
    with db.write():
        insert(db, rows, random.Random(3))
        links = [row.id for row in rows]
        db.execute_many("INSERT INTO task_blockers VALUES (?, ?)", list(zip(links[1:], links, strict=False)))
    return db, links
