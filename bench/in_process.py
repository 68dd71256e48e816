"""What a service answers, without the cost of a process, beside a bare query by an index on the same file."""

from __future__ import annotations

import itertools
import random

import apsw

from bench.project import Size, word
from bench.table import Table
from bench.timing import compare
from rookery.base.clock import stamp
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.tasks import lifecycle, service
from rookery.tasks.listing_store import Query
from rookery.tasks.store import Author

NOW = stamp(1_800_000_000.0)
AUTHOR = Author("bench", NOW)
_AIM = 10.0
_HOT_AIM = 3.0


def measure(root: str, size: Size) -> Table:
    """Reads and claims in a warm process."""
    db = Database.open(database_path(root))
    bare = apsw.Connection(database_path(root))
    draw = random.Random(1)
    ids = itertools.cycle([row[0] for row in db.all("SELECT id FROM tasks ORDER BY random() LIMIT 1000")])
    epics = itertools.cycle([row[0] for row in db.all("SELECT id FROM tasks WHERE parent_id IS NULL LIMIT 100")])

    names = (f"branch-{number}" for number in itertools.count())

    def query(sql: str, *values: object) -> list[tuple[object, ...]]:
        return bare.execute(sql, values).fetchall()

    def words() -> str:
        return word(draw.randrange(5_000))

    def bare_write() -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("UPDATE tasks SET branch = ? WHERE id = ?", (next(names), next(ids)))
        bare.execute("COMMIT")

    figures = (
        compare(
            "next-ready",
            lambda: service.next_ready(db, NOW),
            lambda: query("SELECT * FROM tasks WHERE parent_id IS NULL ORDER BY priority, created_at, id LIMIT 1"),
            size.repeat,
            most=_HOT_AIM,
        ),
        compare(
            "get",
            lambda: service.get(db, next(ids)),
            lambda: query("SELECT * FROM tasks WHERE id = ?", next(ids)),
            size.repeat,
            most=_HOT_AIM,
        ),
        compare(
            "list, page of 200",
            lambda: service.list_tasks(db, Query(), NOW),
            lambda: query("SELECT * FROM tasks ORDER BY priority, created_at, id LIMIT 200"),
            size.repeat // 4,
            most=_AIM,
        ),
        compare(
            "list --ready, page of 200",
            lambda: service.list_tasks(db, Query(ready=True), NOW),
            lambda: query("SELECT * FROM tasks ORDER BY priority, created_at, id LIMIT 200"),
            size.repeat // 4,
            most=_AIM,
        ),
        compare(
            "search, one word",
            lambda: service.search(db, words(), 50),
            lambda: query("SELECT rowid FROM tasks_search WHERE tasks_search MATCH ? LIMIT 50", words()),
            size.repeat // 4,
            most=_AIM,
        ),
        compare(
            "tree of one epic",
            lambda: service.tree(db, next(epics)),
            lambda: query("SELECT * FROM tasks WHERE parent_id = ?", next(epics)),
            size.repeat // 4,
            most=_AIM,
        ),
        compare(
            "claim, durable",
            lambda: lifecycle.claim(db, AUTHOR.replace(name="bench"), lease=1e8, clock=1_800_000_000.0),
            bare_write,
            size.repeat // 4,
            most=_AIM,
        ),
    )
    bare.close()
    db.close()
    return Table("In process", "a bare query by an index, through apsw, on the same file", figures)
