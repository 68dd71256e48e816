"""Connections that are kept for the next call."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.base.call import serving
from rookery.db.database import Database
from rookery.db.migrate import remove
from rookery.db.pool import Pool
from served import make_call
from templates import copy_database


@pytest.fixture
def path(tmp_path: Path) -> str:
    database = str(tmp_path / "rookery.db")
    copy_database(database)
    return database


def test_a_connection_is_used_again_and_its_database_is_not(path: str) -> None:
    call = make_call()
    call.connections = Pool()
    with serving(call):
        first = Database.open(path)
        connection = first.connection
        first.close()
        first.close()  # twice is once
        with pytest.raises(AttributeError):
            first.value("SELECT 1")
        one, other = Database.open(path), Database.open(path)
        assert connection in (one.connection, other.connection)
        assert one.connection is not other.connection
        one.close()
        other.close()
    call.connections.close()


def test_a_file_that_was_replaced_is_opened_again(path: str) -> None:
    call = make_call()
    call.connections = Pool()
    with serving(call):
        db = Database.open(path)
        db.execute("CREATE TABLE only_here (a)")
        db.close()
        remove(path)
        copy_database(path)
        db = Database.open(path)
        assert db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'only_here'") == 0
        db.close()
    call.connections.close()


def test_what_was_left_undone_is_not_handed_on(path: str) -> None:
    call = make_call()
    call.connections = Pool()
    with serving(call):
        db = Database.open(path)
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE half_done (a)")
        db.close()
        db = Database.open(path)
        assert not db.connection.in_transaction
        assert db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'half_done'") == 0
        db.close()
    call.connections.close()
