from __future__ import annotations

import json
import signal
from pathlib import Path

import apsw
import pytest

from rookery.base.errors import StorageFailed
from rookery.db import database, migrate
from rookery.db.database import Database
from rookery.db.migrate import SCHEMA_VERSION
from rookery.events import store
from rookery.events.model import is_error
from support import add, run_together, start_python, wait_until

_NEXT = "CREATE TABLE extra (n); INSERT INTO extra VALUES (1);"


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Rookery with one more migration; its folder."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for number, file in migrate.migrations():
        (folder / Path(file).name).write_text(Path(file).read_text())
        assert number <= SCHEMA_VERSION
    (folder / f"{SCHEMA_VERSION + 1:04}_extra.sql").write_text(_NEXT)
    monkeypatch.setattr(migrate, "_FOLDER", str(folder))
    monkeypatch.setattr(migrate, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(database, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    return folder


def test_the_schema_is_what_the_migrations_lead_to() -> None:
    numbers = [number for number, _ in migrate.migrations()]
    assert numbers == list(range(1, SCHEMA_VERSION + 1))


def test_applying_twice_is_harmless(db: Database) -> None:
    task = add(db)
    migrate._apply(db.connection)
    assert db.value("SELECT id FROM tasks") == task
    assert db.value("PRAGMA user_version") == SCHEMA_VERSION


def test_an_upgrade_keeps_the_data_and_a_backup(db: Database, newer: Path) -> None:
    task = add(db)
    upgraded = Database.open(db.path)
    assert upgraded.value("SELECT n FROM extra") == 1
    assert upgraded.value("SELECT id FROM tasks") == task
    upgraded.close()
    [backup] = (newer.parent / "backups").iterdir()
    assert backup.name == f"schema-{SCHEMA_VERSION}.db"
    old = apsw.Connection(str(backup))
    assert old.execute("SELECT id FROM tasks").fetchall() == [(task,)]
    assert old.pragma("user_version") == SCHEMA_VERSION
    old.close()


def test_a_migration_that_fails_changes_nothing(db: Database, newer: Path) -> None:
    bad = newer / f"{SCHEMA_VERSION + 1:04}_extra.sql"
    bad.write_text("CREATE TABLE extra (n); SELECT nonsense;")
    with pytest.raises(apsw.SQLError):
        Database.open(db.path)
    assert db.value("PRAGMA user_version") == SCHEMA_VERSION
    assert db.all("SELECT name FROM sqlite_schema WHERE name = 'extra'") == []
    bad.write_text(_NEXT)
    Database.open(db.path).close()


def test_a_backup_that_cannot_be_written_stops_the_upgrade(db: Database, newer: Path) -> None:
    (newer.parent / "backups").write_text("a file where the folder should be")
    with pytest.raises(StorageFailed) as caught:
        Database.open(db.path)
    assert caught.value.hint
    assert db.value("PRAGMA user_version") == SCHEMA_VERSION


_UPGRADE = """
import sys
from rookery.db import database, migrate
migrate._FOLDER, version = sys.argv[2], int(sys.argv[3])
migrate.SCHEMA_VERSION = database.SCHEMA_VERSION = version
print("here", flush=True)
sys.stdin.readline()
database.Database.open(sys.argv[1]).close()
"""


def test_many_upgrade_at_once(db: Database, newer: Path) -> None:
    run_together([start_python(_UPGRADE, db.path, str(newer), str(SCHEMA_VERSION + 1)) for _ in range(4)])
    assert db.all("SELECT n FROM extra") == [(1,)]


def test_a_kill_within_a_migration_leaves_it_to_the_next(db: Database, newer: Path) -> None:
    add(db)
    script = newer / f"{SCHEMA_VERSION + 1:04}_extra.sql"
    numbers = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 50000000)"
    script.write_text(f"CREATE TABLE extra (n); INSERT INTO extra {numbers} SELECT n FROM c;")
    child = start_python(_UPGRADE, db.path, str(newer), str(SCHEMA_VERSION + 1))
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.flush()
    wait_until(lambda: _is_locked(db))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    script.write_text(_NEXT)
    upgraded = Database.open(db.path)
    assert upgraded.value("PRAGMA integrity_check") == "ok"
    assert upgraded.all("SELECT n FROM extra") == [(1,)]
    assert upgraded.value("SELECT count(*) FROM tasks") == 1
    upgraded.close()


def _is_locked(db: Database) -> bool:
    db.connection.set_busy_timeout(0)
    try:
        with db.write():
            return False
    except StorageFailed as error:
        return error.code == "storage_busy"


def test_older_events_are_known_to_be_errors_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema 10 marks what went wrong, and keeps times by number."""
    path = str(tmp_path / "rookery.db")
    every = migrate.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: every[:9])
        migrate.create_file(path)
    events = [
        ("turn.lost", "{}", 1),
        ("merge.failed", "{}", 1),
        ("turn.ended", '{"ok": false}', 1),
        ("turn.ended", '{"ok": true}', 0),
        ("agent.ended", '{"set": {"outcome": "crashed"}}', 1),
        ("agent.ended", '{"set": {"outcome": "completed"}}', 0),
        ("agent.waiting", "{}", 0),
        ("task.updated", '{"set": {}}', 0),
    ]
    old = apsw.Connection(path)
    sql = "INSERT INTO events (id, at, type, actor, subject, data) VALUES ('e', ?, ?, 'a', 's', ?)"
    for day in range(1, 31):
        old.executemany(sql, [(f"2026-01-{day:02}", kind, data) for kind, data, _ in events])
    old.close()
    db = Database.open(path)
    assert [(row[0], row[1], row[2]) for row in db.all("SELECT type, data, is_error FROM events LIMIT 8")] == events
    assert len(store.read(db, errors=True)) == 4 * 30
    assert [len(store.read(db, since=f"2026-01-{day:02}")) for day in (1, 13, 30, 31)] == [240, 144, 8, 0]
    assert all(is_error(kind, json.loads(data)) == bool(error) for kind, data, error in events)
    db.close()
