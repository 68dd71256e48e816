"""An interrupt of a call ends its query and its waiting for the database, and nothing of any other call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rookery.base.call import Call
from rookery.db.database import Database
from served import Served, make_call
from support import add, everything

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000) SELECT count(*) FROM n"


def serve(path: str, use: Callable[[Database], Any], call: Call | None = None) -> Served:
    """Use a connection of its own in a thread of its own."""

    def run() -> Any:
        db = Database.open(path)
        try:
            return use(db)
        finally:
            db.close()

    return Served(call or make_call(), run)


def _read_all(db: Database) -> None:
    with db.rows(ENDLESS) as rows:
        list(rows)


@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.all(ENDLESS),
        lambda db: db.one(ENDLESS),
        _read_all,
        lambda db: db.execute(f"UPDATE tasks SET priority = ({ENDLESS})"),
        lambda db: db.execute_many(f"UPDATE tasks SET priority = ({ENDLESS}) WHERE id <> ?", [("a",)]),
    ],
    ids=["all", "one", "rows", "execute", "execute_many"],
)
def test_an_interrupt_ends_a_query(use: Callable[[Database], Any], db: Database) -> None:
    add(db)
    before = everything(db)
    asking = serve(db.path, use)
    other = serve(db.path, lambda db: db.value(LONG))
    asking.call.interrupt()
    assert isinstance(asking.end(), KeyboardInterrupt)
    assert other.value() == 200_000
    assert everything(db) == before


def test_an_interrupt_in_a_transaction_leaves_everything_as_it_was(db: Database) -> None:
    before = everything(db)

    def change(own: Database) -> None:
        with own.write():
            add(own)
            own.value(ENDLESS)

    changing = serve(db.path, change)
    changing.call.interrupt()
    assert isinstance(changing.end(), KeyboardInterrupt)
    assert everything(db) == before
    with db.write():  # and holds no lock
        add(db)


def test_an_interrupt_ends_the_waiting_for_another_writer(db: Database) -> None:
    def change(own: Database) -> None:
        with own.write():
            add(own)

    with db.write():
        waiting = serve(db.path, change)
        waiting.call.interrupt()
        assert isinstance(waiting.end(), KeyboardInterrupt)
    assert db.value("SELECT count(*) FROM tasks") == 0


def test_a_connection_can_be_interrupted_that_was_open_before_its_call(db: Database) -> None:
    """The daemon keeps connections, and gives them to one call after another."""
    first, second = make_call(), make_call()

    def use(own: Database) -> list[str]:
        ended = []
        for call in (first, second):
            inner = Served(call, lambda: own.value(ENDLESS))
            call.interrupt()
            ended.append(type(inner.end()).__name__)
        return ended

    assert use(db) == ["KeyboardInterrupt", "KeyboardInterrupt"]
    assert db.value(LONG) == 200_000
