from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from rookery.base.errors import StorageFailed
from rookery.db import migrate
from rookery.db.database import Database
from rookery.db.migrate import APPLICATION_ID, SCHEMA_VERSION
from rookery.db.sqlite import patience
from support import add, everything, refusal, run_together, start_python


def test_a_transaction_is_whole_or_nothing(db: Database) -> None:
    before = everything(db)

    def add_and_fail() -> None:
        with db.write():
            add(db)
            with db.write():
                add(db)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        add_and_fail()
    assert everything(db) == before
    with db.write():
        add(db)
    assert db.value("SELECT count(*) FROM tasks") == 1


def test_a_reader_sees_one_state(db: Database) -> None:
    other = Database.open(db.path)
    with other.read():
        assert other.value("SELECT count(*) FROM tasks") == 0
        add(db)
        assert other.value("SELECT count(*) FROM tasks") == 0
    assert other.value("SELECT count(*) FROM tasks") == 1
    other.close()


def test_data_version_tells_of_others(db: Database) -> None:
    other = Database.open(db.path)
    before = db.data_version
    assert db.data_version == before
    add(other)
    assert db.data_version != before
    other.close()


def test_settings_that_keep_data_safe(db: Database) -> None:
    assert db.value("PRAGMA journal_mode") == "wal"
    assert db.value("PRAGMA synchronous") == 2
    assert db.value("PRAGMA foreign_keys") == 1


def test_a_writer_waits_for_another_and_gives_up_in_the_end(db: Database) -> None:
    other = Database.open(db.path)
    db.connection.set_busy_handler(patience(0.05))
    with other.write():
        began = time.monotonic()
        assert refusal(lambda: db.write().__enter__()) == "storage_busy"
        assert 0.05 <= time.monotonic() - began < 10
    with db.write():
        add(db)
    other.close()


def test_a_broken_rule_of_ours_is_a_bug_not_a_refusal(db: Database) -> None:
    with pytest.raises(apsw.SQLError):
        db.execute("SELECT nonsense")
    with pytest.raises(apsw.ConstraintError):
        db.execute("INSERT INTO task_blockers VALUES ('a', 'b')")


def test_a_full_database_changes_nothing_and_goes_on(db: Database) -> None:
    before = everything(db)
    db.execute(f"PRAGMA max_page_count = {db.value('PRAGMA page_count') + 2}")
    with pytest.raises(StorageFailed, match="full") as caught:
        add(db, description="x" * 100_000)
    assert (caught.value.code, bool(caught.value.hint)) == ("storage_full", True)
    assert everything(db) == before
    db.execute("PRAGMA max_page_count = 1000000")
    add(db, description="x" * 100_000)


def _newer(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.pragma("user_version", SCHEMA_VERSION + 1)
    db.close()


def _foreign(path: Path, version: int) -> None:
    path.unlink()
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE notes (words)")
    db.pragma("user_version", version)
    db.close()


def _scrambled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:] = b"\xff" * (len(content) - 200)
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_SPOILED: list[tuple[str, Callable[[Path], object], str]] = [
    ("newer", _newer, "storage_newer"),
    ("foreign", lambda path: _foreign(path, 0), "storage_foreign"),
    ("foreign of our version", lambda path: _foreign(path, SCHEMA_VERSION), "storage_foreign"),
    ("text", lambda path: path.write_text("hello, this is a text\n" * 100), "storage_damaged"),
    ("empty", lambda path: path.write_bytes(b""), "storage_foreign"),
    ("scrambled", _scrambled, "storage_damaged"),
    ("missing", lambda path: path.unlink(), "storage_unavailable"),
    ("folder", _folder, "storage_unavailable"),
]


@pytest.mark.parametrize(("spoil", "code"), [pytest.param(s[1], s[2], id=s[0]) for s in _SPOILED])
def test_what_cannot_be_used_is_refused_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], object], code: str
) -> None:
    path = tmp_path / "rookery.db"
    Database.create(str(path)).close()
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StorageFailed) as caught:
        Database.open(str(path)).all("SELECT * FROM tasks")
    assert caught.value.code == code
    assert caught.value.hint
    assert str(path) in caught.value.message
    assert (path.read_bytes() if path.is_file() else None) == before


def test_create_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as caught:
        Database.create(str(tmp_path / "missing" / "rookery.db"))
    assert caught.value.code == "storage_unavailable"


def test_a_failed_create_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_bad.sql").write_text("CREATE TABLE a (b); SELECT nonsense;")
    monkeypatch.setattr(migrate, "_FOLDER", str(folder))
    with pytest.raises(apsw.SQLError):
        Database.create(str(tmp_path / "rookery.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["migrations"]


def test_create_keeps_what_is_there(db: Database) -> None:
    task = add(db)
    again = Database.create(db.path)
    assert again.value("SELECT id FROM tasks") == task
    assert again.value("PRAGMA application_id") == APPLICATION_ID
    again.close()


_CREATE = """
import sys
from rookery.db.database import Database
print("here", flush=True)
sys.stdin.readline()
db = Database.create(sys.argv[1])
db.execute("INSERT INTO events (id, at, type, actor, subject, data) VALUES ('e', '', 't', 'a', 's', '{}')")
"""


def test_many_create_at_once_and_share_one(tmp_path: Path) -> None:
    path = tmp_path / "rookery.db"
    run_together([start_python(_CREATE, str(path)) for _ in range(6)])
    db = Database.open(str(path))
    assert db.value("SELECT count(*) FROM events") == 6
    db.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rookery.db", "rookery.db-commits"]
