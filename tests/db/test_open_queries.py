"""No query stays open while a caller reads slowly: the write-ahead log could not be cleared, and would grow."""

from __future__ import annotations

import pytest

from rookery.db.database import Database
from rookery.tasks import listing_store
from support import NOW, add

MANY = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT x FROM n, tasks"


def is_blocked(path: str) -> bool:
    """True if an open query keeps the write-ahead log from being truncated."""
    db = Database.open(path)
    try:
        db.connection.set_busy_handler(None)
        add(db)
        return bool(db.value("PRAGMA wal_checkpoint(TRUNCATE)"))
    finally:
        db.close()


def test_an_open_query_would_be_seen(db: Database) -> None:
    add(db)
    other = Database.open(db.path)
    with other.rows(MANY) as rows:
        assert next(rows) == (1,)
        assert is_blocked(db.path)
    assert not is_blocked(db.path)
    other.close()


def test_a_query_ends_with_its_block_though_an_error_keeps_its_frames(db: Database) -> None:
    add(db)
    other = Database.open(db.path)

    def read() -> None:
        with other.rows(MANY) as rows:
            for _row in rows:
                raise LookupError

    with pytest.raises(LookupError) as caught:
        read()
    assert caught.value.__traceback__ is not None
    assert not is_blocked(db.path)
    other.close()


def test_a_search_for_work_that_fails_leaves_no_query_open(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add(db)
    add(db)
    other = Database.open(db.path)

    def fail(*_values: object) -> None:
        raise LookupError

    monkeypatch.setattr(listing_store, "Task", fail)
    with pytest.raises(LookupError) as caught:
        listing_store.next_ready(other, NOW)
    assert caught.value.__traceback__ is not None
    monkeypatch.undo()
    assert not is_blocked(db.path)
    other.close()
