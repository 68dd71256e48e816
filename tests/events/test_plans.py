"""What is asked of tables that only grow is found by an index: a million events cost no more than a few."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import rookery
from conftest import Rook
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.db.database import Database
from rookery.events import store
from rookery.events.telemetry import Telemetry
from rookery.ops.context import Context
from rookery.status import activity
from rookery.status.activity import Query, about, rows
from support import NOW, add

_ASKS = {
    "events": {
        ("events/store.py", "read"),
        ("events/store.py", "_types"),
        ("events/store.py", "last_actor"),
        ("events/store.py", "last_data"),
        ("events/store.py", "last_seq"),
        ("events/store.py", "latest_time"),
    },
    "records": {
        ("events/telemetry.py", "read"),
        ("events/telemetry.py", "usage"),
        ("events/telemetry.py", "is_denied"),
        ("events/telemetry.py", "last_seq"),
        ("events/telemetry.py", "changed_files"),
        ("events/telemetry.py", "_create"),
    },
}
"""Every function whose SQL reads a table that only grows. `test_growth.py` measures each of them."""
_ONCE_A_DAY = {
    ("events/store.py", "oldest"),
    ("events/store.py", "delete"),
    ("events/telemetry.py", "measure"),
    ("events/telemetry.py", "delete"),
}
"""Those that remove what is old; they may take time."""
_BOUNDED = {("inbox/store.py", "failed"), ("inbox/store.py", "stray")}
"""Those that ask once for each of a few rows; the inbox's own test looks at their plan."""
_OPTIONS: dict[str, list[Any]] = {
    "after": [0, 7],
    "before": [None, 9],
    "since": [None, NOW],
    "kinds": [(), ("task",), ("task.created", "agent")],
    "actor": [None, "bee"],
    "subject": [None, "t"],
    "errors": [False, True],
    "limit": [-1, 5],
    "newest": [False, True],
}


class Plans:
    """The plan of every statement that a connection runs."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.plans: dict[str, list[str]] = {}
        connection.exec_trace = self._note

    def _note(self, _cursor: object, sql: str, values: Any) -> bool:
        if sql.lstrip().startswith(("SELECT", "WITH", "UPDATE", "DELETE")) and sql not in self.plans:
            self.plans[sql] = []
            rows = self.connection.execute("EXPLAIN QUERY PLAN " + sql, values or ()).fetchall()
            self.plans[sql] = [str(row[3]) for row in rows]
        return True

    def scans(self, table: str) -> list[str]:
        """The statements that read through the whole table, or a whole index of it."""
        # A bare SEARCH looks for the least or the greatest number: from an end, row by row if there are conditions.
        scan = re.compile(rf"^SCAN {table}\b|^SEARCH {table}$")
        return [
            sql
            for sql, plan in self.plans.items()
            if any(scan.match(step) for step in plan) and not sql.startswith("SELECT coalesce(max(seq), 0) FROM")
        ]


def _ask_everything(db: Database) -> None:
    for chosen in itertools.product(*_OPTIONS.values()):
        store.read(db, **dict(zip(_OPTIONS, chosen, strict=True)))
    store.last_actor(db, "task.approved", "t")
    store.last_seq(db)
    store.latest_time(db)


def test_nothing_reads_through_all_events(db: Database) -> None:
    add(db)
    plans = Plans(db.connection)
    _ask_everything(db)
    assert len(plans.plans) > 40
    assert plans.scans("events") == []


def test_a_scan_would_be_seen(db: Database) -> None:
    plans = Plans(db.connection)
    db.all("SELECT data FROM events WHERE data LIKE '%x%'")
    assert len(plans.scans("events")) == 1


@pytest.mark.parametrize(
    ("options", "index"),
    [
        ({"kinds": ("task",)}, "events_by_type (type=? AND rowid>?)"),
        ({"actor": "human"}, "events_by_actor (actor=? AND type=? AND rowid>?)"),
        ({"subject": "t", "kinds": ("merge",)}, "events_by_subject (subject=? AND type=? AND rowid>?)"),
        ({"errors": True}, "events_of_errors (seq>?)"),
        ({"errors": True, "actor": "bee"}, "events_of_errors_by_actor (actor=? AND rowid>?)"),
        ({"since": NOW}, "USING PRIMARY KEY (latest<?)"),
        ({"after": 5}, "INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_each_question_has_its_index(db: Database, options: dict[str, Any], index: str) -> None:
    add(db)
    plans = Plans(db.connection)
    store.read(db, limit=5, newest=True, **options)
    assert any(index in step for plan in plans.plans.values() for step in plan), plans.plans


@pytest.mark.parametrize(
    "options",
    [
        {"since": "2026-02-01T00:00:00.000Z"},
        {"since": "2026-02-01T00:00:00.000Z", "kinds": ("task",)},
        {"kinds": ("rare",)},
        {"subject": "rare", "kinds": ("rare",)},
        {"actor": "rare", "limit": 5},
    ],
)
def test_a_few_among_many_take_few_steps(db: Database, options: dict[str, Any]) -> None:
    many, few = ("task.updated", "bee", "t", NOW), ("rare.told", "rare", "rare", "2026-02-02T00:00:00.000Z")
    with db.write():
        for kind, actor, subject, at in [*[many] * 20_000, *[few] * 3]:
            store.publish(db, kind, subject, {}, actor=actor, at=at)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    db.connection.set_progress_handler(count, 100)
    events = store.read(db, newest=True, **options)
    db.connection.set_progress_handler(None)
    assert len(events) == (0 if options.get("kinds") == ("task",) else 3)
    assert steps < 10


@pytest.mark.slow
@pytest.mark.parametrize("table", _ASKS)
def test_the_list_of_questions_is_whole(table: str) -> None:
    """Only the doctor's comparison may read all events, and it uses `read`."""
    assert set(_readers(table)) - _ONCE_A_DAY - _BOUNDED == _ASKS[table]


def _readers(table: str) -> Iterator[tuple[str, str]]:
    reads = re.compile(rf"\b(FROM|JOIN)\s+{table}\b")
    source = Path(rookery.__file__).parent
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            nodes = (function, *(value for name, value in constants.items() if name in names))
            texts = [part.value for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if any(isinstance(text, str) and reads.search(text) for text in texts):
                yield str(path.relative_to(source)), function.name


@pytest.mark.parametrize(
    "wanted",
    [
        Query(),
        about("bee"),
        Query(subjects=("t", "bee")),
        Query(errors=True),
        Query(since=NOW),
        about("bee", "human").replace(since=NOW, errors=True),
    ],
)
def test_feeds_read_by_an_index(rook: Rook, wanted: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    db = rook.open()
    add(db)
    ctx = Context.at(str(rook.folder), db, load_config(str(rook.folder), read_environ({}), {}).config)
    records = Telemetry(ctx.path("telemetry.db"))
    records.add(at=NOW, agent="bee", session_id="s", turn_id=None, kind="tool", data={})
    kept: list[Plans] = [Plans(db.connection), Plans(records.db.connection)]
    monkeypatch.setattr(activity, "Telemetry", lambda _path: records)
    monkeypatch.setattr(records, "close", lambda: None)
    newest = list(rows(ctx, wanted.replace(limit=20)))
    followed = rows(ctx, wanted.replace(limit=20), follow=True)
    assert [next(followed) for _ in newest] == newest
    assert kept[0].scans("events") == []
    assert kept[1].scans("records") == []
    records.db.close()
    db.close()


def test_telemetry_is_read_by_an_index(tmp_path: Path) -> None:
    records = Telemetry(str(tmp_path / "telemetry.db"))
    plans = Plans(records.db.connection)
    for agent, session, errors, since in itertools.product(("bee", None), ("s", None), (False, True), (NOW, None)):
        records.read(agent=agent, session_id=session, errors=errors, since=since, limit=5, newest=True)
    records.changed_files("bee")
    records.last_seq()
    assert plans.scans("records") == []
    records.close()


def test_an_older_file_of_records_gets_its_indexes(tmp_path: Path) -> None:
    path = str(tmp_path / "telemetry.db")
    Telemetry(path).close()
    old = apsw.Connection(path)
    for name in ("agent", "errors_by_agent", "file_changes", "usage", "denials", "errors"):
        old.execute(f"DROP INDEX records_{'by' if name == 'agent' else 'of'}_{name}")
    old.execute("DROP TABLE record_times; CREATE INDEX records_by_time ON records (at)")
    columns = "id, agent, session_id, kind, name, is_error, data, at"
    sql = f"INSERT INTO records ({columns}) VALUES ('r', 'bee', 's', 'k', '', 0, '{{}}', ?)"
    old.executemany(sql, [(f"2026-01-{1 + number // 50:02}",) for number in range(350)])
    old.pragma("user_version", 2)
    old.close()
    records = Telemetry(path)
    names = {row[0] for row in records.db.all("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    assert {"records_by_agent", "records_of_errors", "records_of_errors_by_agent", "records_of_denials"} <= names
    assert "records_by_time" not in names
    assert [len(records.read(since=f"2026-01-{day:02}")) for day in range(1, 9)] == [*range(350, 0, -50), 0]
    assert records.read(since="2026-01-07")[0].seq == 301
    records.close()


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT 1 FROM messages WHERE session_id = ? AND type = 'merge_ready'", "messages_by_session"),
        (
            "SELECT sender FROM messages WHERE type = 'merge_ready' AND json_extract(payload, '$.branch') = ? "
            "AND sender <> 'x' AND created_at >= '' ORDER BY seq DESC LIMIT 1",
            "messages_by_branch",
        ),
        ("SELECT 1 FROM messages WHERE type = ? ORDER BY seq DESC LIMIT 5", "messages_by_type"),
        ("SELECT 1 FROM turns n JOIN sessions s ON s.id = n.session_id WHERE n.state = 'running'", "turns_running"),
    ],
)
def test_mail_and_turns_are_found_by_an_index(db: Database, sql: str, index: str) -> None:
    plan = db.all("EXPLAIN QUERY PLAN " + sql, ("x",) if "?" in sql else ())
    assert any(index in str(row[3]) for row in plan), plan
