from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.base.errors import Refused
from rookery.base.ids import LEARNING, TASK, new_id
from rookery.db.database import Database
from rookery.tasks import learnings, lifecycle, service, transfer
from rookery.tasks.history import agrees
from rookery.tasks.model import ImportInvalid
from support import AUTHOR, NOW, add, everything

Document = dict[str, Any]

_TITLES = [
    "plain",
    "two\nlines\r\n",
    "👩‍👩‍👧",
    "שלום",
    "e\u0301",
    "'; DROP --",
    "\u2028\u2029\x85\x1c\x7f",
]


@pytest.fixture
def full(db: Database) -> Database:
    """A project with something of everything."""
    epic = add(db, "\u2028 epic", description="d" * 1000, context="c\x85c", design="# how", priority=1)
    tasks = [add(db, title, epic, priority=2 + n % 3) for n, title in enumerate(_TITLES)]
    subtask = add(db, "subtask", tasks[0])
    service.block(db, tasks[1], [tasks[2], tasks[3]], AUTHOR)
    learnings.add(db, subtask, "tabs\u2028", AUTHOR)
    lifecycle.complete(db, subtask, AUTHOR, result="done\x85", commit="c0ffee")
    lifecycle.claim(db, AUTHOR.replace(name="ada"), lease=60, clock=1_800_000_000.0)
    lifecycle.cancel(db, tasks[4], AUTHOR, reason="no")
    lifecycle.archive(db, tasks[4], AUTHOR)
    lifecycle.fail(db, tasks[5], AUTHOR)
    return db


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    other = Database.create(str(tmp_path / "empty.db"))
    yield other
    other.close()


def _import(db: Database, path: Path, *, clear: bool = False) -> transfer.Imported:
    return transfer.import_file(
        db,
        str(path),
        AUTHOR,
        clear=clear,
        backups=str(path.parent / "backups"),
        progress=lambda _label, _total: lambda _done: None,
    )


def _without_time(path: Path) -> str:
    return re.sub(r'"exported_at": "[^"]*"', "", path.read_text(), count=1)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_round_trip_is_exact(full: Database, empty: Database, tmp_path: Path, ending: str) -> None:
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    transfer.export_file(full, str(first), NOW)
    done = _import(empty, first)
    transfer.export_file(empty, str(second), "2027-01-01T00:00:00.000Z")
    assert _without_time(first) == _without_time(second)
    assert first.read_text() != second.read_text()
    assert (done.tasks, done.learnings, done.backup) == (9, 3, None)
    assert agrees(empty)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_records_come_in_any_order(full: Database, empty: Database, tmp_path: Path, ending: str) -> None:
    path, mixed = tmp_path / f"first.{ending}", tmp_path / f"mixed.{ending}"
    transfer.export_file(full, str(path), NOW)
    shuffle = random.Random(7).shuffle
    if ending == "json":
        document = json.loads(path.read_text())
        shuffle(document["tasks"])
        shuffle(document["learnings"])
        mixed.write_text(json.dumps(document))
    else:
        header, *records = path.read_text().rstrip("\n").split("\n")
        shuffle(records)
        mixed.write_text("\n".join([header, *records]))
    _import(empty, mixed)
    again = tmp_path / f"again.{ending}"
    transfer.export_file(empty, str(again), NOW)
    assert again.read_text() == path.read_text()


def test_clear_keeps_a_backup_that_can_be_imported(full: Database, empty: Database, tmp_path: Path) -> None:
    path, again = tmp_path / "one.json", tmp_path / "again.json"
    transfer.export_file(full, str(path), NOW)
    kept = add(empty, "other")
    transfer.export_file(empty, str(tmp_path / "other.json"), NOW)
    done = _import(full, tmp_path / "other.json", clear=True)
    assert (done.deleted, done.tasks) == (9, 1)
    assert full.all("SELECT id FROM tasks") == [(kept,)]
    assert full.all("SELECT * FROM learnings") == []
    assert done.backup is not None
    _import(full, Path(done.backup), clear=True)
    transfer.export_file(full, str(again), NOW)
    assert again.read_text() == path.read_text()
    assert agrees(full)


def test_the_backup_is_written_before_other_writers_have_to_wait(
    full: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.json"
    transfer.export_file(full, str(path), NOW)
    held: list[bool] = []
    export = transfer.export_file

    def listen(db: Database, path: str, now: str) -> transfer.Exported:
        held.append(db.connection.in_transaction)
        return export(db, path, now)

    monkeypatch.setattr(transfer, "export_file", listen)
    assert _import(full, path, clear=True).deleted == 9
    assert held == [False]


def test_what_is_added_while_the_backup_is_written_is_in_it(
    full: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.json"
    transfer.export_file(full, str(path), NOW)
    export = transfer.export_file
    late: list[str] = []

    def add_meanwhile(db: Database, path: str, now: str) -> transfer.Exported:
        done = export(db, path, now)
        if not late:
            late.append(add(db, "late"))
        return done

    monkeypatch.setattr(transfer, "export_file", add_meanwhile)
    done = _import(full, path, clear=True)
    assert done.deleted == 10
    assert done.backup is not None
    assert late[0] in Path(done.backup).read_text()


def test_a_project_that_changes_all_the_time_is_left_as_it_is(
    full: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.json"
    transfer.export_file(full, str(path), NOW)
    export = transfer.export_file

    def add_meanwhile(db: Database, path: str, now: str) -> transfer.Exported:
        done = export(db, path, now)
        add(db, "late")
        return done

    monkeypatch.setattr(transfer, "export_file", add_meanwhile)
    with pytest.raises(Refused, match="faster than they can be backed up"):
        _import(full, path, clear=True)
    assert full.value("SELECT count(*) FROM tasks WHERE title = 'late'") == 5
    assert full.value("SELECT count(*) FROM tasks") == 14


def test_ids_that_are_there_already_are_refused(full: Database, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    transfer.export_file(full, str(path), NOW)
    before = everything(full)
    with pytest.raises(ImportInvalid, match=r"tasks\[0\]\.id: task_\w+ is already in the project") as caught:
        _import(full, path)
    assert "--clear" in caught.value.hint
    assert everything(full) == before


def test_an_import_may_go_under_an_existing_task(empty: Database, tmp_path: Path) -> None:
    epic = add(empty)
    document = _document()
    document["tasks"] = [_task(parent_id=epic)]
    document["learnings"] = []
    (tmp_path / "more.json").write_text(json.dumps(document))
    _import(empty, tmp_path / "more.json")
    assert service.progress(empty, epic, NOW).total == 1
    lifecycle.cancel(empty, epic, AUTHOR)
    document["tasks"] = [_task(parent_id=epic)]
    (tmp_path / "more.json").write_text(json.dumps(document))
    with pytest.raises(ImportInvalid, match="pending under"):
        _import(empty, tmp_path / "more.json")


def _task(**changes: Any) -> Document:
    texts = {"title": "work", "description": "", "context": "", "design": "", "state": "PENDING"}
    names = "parent_id result assignee lease_until branch commit start_commit started_at completed_at archived_at"
    nothing = dict.fromkeys(names.split())
    numbers = {"priority": 3, "attempts": 0}
    times = {"created_at": NOW, "updated_at": NOW}
    return {"id": new_id(TASK), **texts, **nothing, **numbers, **times, "blocked_by": []} | changes


def _document() -> Document:
    epic = _task()
    task = _task(parent_id=epic["id"])
    other = _task(blocked_by=[task["id"]])
    learning = {"id": new_id(LEARNING), "task_id": epic["id"], "content": "x", "source_task_id": None}
    return {
        "format": "rookery",
        "version": 1,
        "exported_at": NOW,
        "tasks": [epic, task, other],
        "learnings": [learning | {"created_at": NOW}],
    }


def _set(path: str, value: Any) -> Callable[[Document], Any]:
    def change(document: Document) -> None:
        *steps, last = [int(word) if word.isdecimal() else word for word in path.split(".")]
        inner: Any = document
        for step in steps:
            inner = inner[step]
        inner[last] = value

    return change


def _drop(path: str) -> Callable[[Document], Any]:
    def change(document: Document) -> None:
        *steps, last = [int(word) if word.isdecimal() else word for word in path.split(".")]
        inner: Any = document
        for step in steps:
            inner = inner[step]
        del inner[last]

    return change


_MUTATIONS: list[tuple[str, Callable[[Document], Any], str]] = [
    ("foreign", _set("format", "overseer"), "not an export"),
    ("no format", _drop("format"), "not an export"),
    ("newer", _set("version", 2), "version 2"),
    ("version as text", _set("version", "1"), "version '1'"),
    ("version as truth", _set("version", True), "version True"),
    ("no version", _drop("version"), "version None"),
    ("no tasks", _drop("tasks"), "tasks: is not a list"),
    (
        "begun by no agent",
        _set("tasks.1.state", "IN_PROGRESS"),
        r"tasks\[1\].state: is in progress, and no agent holds it",
    ),
    (
        "approved without a branch",
        _set("tasks.2.state", "APPROVED"),
        r"tasks\[2\].state: is approved, and has no branch",
    ),
    ("contradictory as text", _set("contradictory", "all"), "contradictory: is not a list of ids"),
    ("tasks as object", _set("tasks", {}), "tasks: is not a list"),
    ("learnings as null", _set("learnings", None), "learnings: is not a list"),
    ("task as text", _set("tasks.1", "work"), r"tasks\[1\]: is not an object"),
    ("task as null", _set("tasks.1", None), r"tasks\[1\]: is not an object"),
    ("no title", _drop("tasks.1.title"), r"tasks\[1\]: lacks title"),
    ("unknown field", _set("tasks.1.colour", 1), r"tasks\[1\]: has unknown colour"),
    ("title as number", _set("tasks.1.title", 5), r"tasks\[1\]\.title"),
    ("empty title", _set("tasks.1.title", " "), r"tasks\[1\]: .*empty"),
    ("NUL in title", _set("tasks.1.title", "a\0"), r"tasks\[1\]: .*NUL"),
    ("surrogate in branch", _set("tasks.1.branch", "\ud800"), r"tasks\[1\]: branch"),
    ("priority 0", _set("tasks.1.priority", 0), r"tasks\[1\]: priority 0"),
    ("priority 2.5", _set("tasks.1.priority", 2.5), r"tasks\[1\]\.priority"),
    ("priority true", _set("tasks.1.priority", True), r"tasks\[1\]\.priority"),
    ("negative attempts", _set("tasks.1.attempts", -1), r"tasks\[1\]\.attempts"),
    ("attempts beyond the database", _set("tasks.1.attempts", 10**30), r"tasks\[1\]\.attempts"),
    ("unknown state", _set("tasks.1.state", "DONE"), r"tasks\[1\]\.state"),
    ("state as list", _set("tasks.1.state", []), r"tasks\[1\]\.state"),
    ("bad time", _set("tasks.1.created_at", "yesterday"), r"tasks\[1\]\.created_at"),
    ("no time", _set("tasks.1.updated_at", None), r"tasks\[1\]\.updated_at"),
    ("bad lease", _set("tasks.1.lease_until", 17), r"tasks\[1\]\.lease_until"),
    ("foreign id", _set("tasks.1.id", "lrn_01ARZ3NDEKTSV4RRFFQ69G5FAV"), r"tasks\[1\]\.id"),
    ("short id", _set("tasks.1.id", "task_01ARZ3"), r"tasks\[1\]\.id"),
    ("unknown parent", _set("tasks.1.parent_id", "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"), r"tasks\[1\]\.parent_id"),
    ("parent as number", _set("tasks.1.parent_id", 1), r"tasks\[1\]\.parent_id"),
    ("unknown blocker", _set("tasks.2.blocked_by", ["task_01ARZ3NDEKTSV4RRFFQ69G5FAV"]), r"tasks\[2\]\.blocked_by"),
    ("blocker as text", _set("tasks.2.blocked_by", "task"), r"tasks\[2\]\.blocked_by"),
    ("twice", lambda d: d["tasks"].append(d["tasks"][0]), r"tasks\[3\]\.id: .*twice"),
    ("own parent", lambda d: d["tasks"][1].update(parent_id=d["tasks"][1]["id"]), r"tasks\[1\]\.parent_id"),
    ("own blocker", lambda d: d["tasks"][1].update(blocked_by=[d["tasks"][1]["id"]]), r"tasks\[1\]\.blocked_by"),
    ("blocked by its parent", lambda d: d["tasks"][1].update(blocked_by=[d["tasks"][0]["id"]]), "blocked_by"),
    ("circle", lambda d: d["tasks"][1].update(blocked_by=[d["tasks"][2]["id"]]), "wait for each other"),
    ("parents in a circle", lambda d: d["tasks"][0].update(parent_id=d["tasks"][1]["id"]), "own ancestor"),
    ("open under finished", _set("tasks.0.state", "COMPLETED"), r"tasks\[1\]\.state: is pending under"),
    ("open but archived", _set("tasks.1.archived_at", NOW), r"tasks\[1\]\.archived_at"),
    ("learning as list", _set("learnings.0", []), r"learnings\[0\]: is not an object"),
    ("learning without words", _set("learnings.0.content", "\n"), r"learnings\[0\]"),
    (
        "learning of a missing task",
        _set("learnings.0.task_id", "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        r"learnings\[0\]\.task_id",
    ),
    ("learning id", _set("learnings.0.id", "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"), r"learnings\[0\]\.id"),
    ("learning twice", lambda d: d["learnings"].append(d["learnings"][0]), r"learnings\[1\]\.id"),
]


def test_a_learning_under_two_ids_is_kept_and_counted_once(db: Database, tmp_path: Path) -> None:
    document = _document()
    document["learnings"].append(document["learnings"][0] | {"id": new_id(LEARNING)})
    (tmp_path / "merged.json").write_text(json.dumps(document))
    assert _import(db, tmp_path / "merged.json").learnings == 1
    assert db.value("SELECT count(*) FROM learnings") == 1


@pytest.mark.parametrize("clear", [False, True], ids=["", "clear"])
@pytest.mark.parametrize(("change", "where"), [pytest.param(m[1], m[2], id=m[0]) for m in _MUTATIONS])
def test_a_wrong_file_changes_nothing_and_says_where(
    db: Database, tmp_path: Path, change: Callable[[Document], Any], where: str, clear: bool
) -> None:
    add(db)
    document = _document()
    change(document)
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document))
    _refused(db, path, where, clear)


def _refused(db: Database, path: Path, where: str, clear: bool = False) -> None:
    before = everything(db)
    with pytest.raises(ImportInvalid, match=where) as caught:
        _import(db, path, clear=clear)
    assert caught.value.hint
    assert everything(db) == before
    assert not (path.parent / "backups").exists()


def test_the_document_of_the_mutations_is_valid(db: Database, tmp_path: Path) -> None:
    (tmp_path / "right.json").write_text(json.dumps(_document()))
    assert _import(db, tmp_path / "right.json").tasks == 3


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("empty.json", b"", "line 1"),
        ("cut.json", b'{"format": "rookery", "version": 1, "tasks": [', "line 1 column"),
        ("list.json", b"[]", "not an export"),
        ("number.json", b"1", "not an export"),
        ("deep.json", b"[" * 100_000, "not JSON"),
        ("digits.json", b'{"format": "rookery", "version": ' + b"1" * 5000 + b"}", "not JSON"),
        ("latin.json", b'{"format": "\xe9"}', "not UTF-8 at byte 12"),
        ("binary.json", b"SQLite format 3\0", "not JSON"),
        ("empty.jsonl", b"", "not an export"),
        ("cut.jsonl", b'{"format": "rookery", "version": 1}\n{"task": {"id"', "line 2"),
        ("list.jsonl", b'{"format": "rookery", "version": 1}\n[]\n', "line 2"),
        ("other.jsonl", b'{"format": "rookery", "version": 1}\n{"note": 1}\n', "line 2"),
        ("blank.jsonl", b'{"format": "rookery", "version": 1}\n\n{"task": 1}\n', r"tasks\[0\]"),
    ],
)
def test_a_damaged_file_changes_nothing_and_says_where(
    db: Database, tmp_path: Path, name: str, content: bytes, where: str
) -> None:
    add(db)
    (tmp_path / name).write_bytes(content)
    _refused(db, tmp_path / name, where)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_every_cut_of_a_file_changes_nothing(full: Database, empty: Database, tmp_path: Path, ending: str) -> None:
    path, cut = tmp_path / f"one.{ending}", tmp_path / f"cut.{ending}"
    transfer.export_file(full, str(path), NOW)
    whole = path.read_bytes()
    for size in random.Random(3).sample(range(len(whole) - 2), 60):
        if ending == "jsonl" and b"\n" in (whole[size : size + 1], whole[max(size - 1, 0) : size]):
            continue  # a whole number of records cannot be told from a shorter file
        cut.write_bytes(whole[:size])
        _refused(empty, cut, str(cut))


def test_a_missing_file_is_named(db: Database, tmp_path: Path) -> None:
    _refused(db, tmp_path / "none.json", "none.json: No such file")


@pytest.mark.slow
def test_ten_thousand_tasks(db: Database, tmp_path: Path) -> None:
    document = _document()
    epics = [_task() for _ in range(100)]
    document["tasks"] = epics + [_task(parent_id=epics[n % 100]["id"]) for n in range(9_900)]
    document["learnings"] = []
    (tmp_path / "many.json").write_text(json.dumps(document))
    assert _import(db, tmp_path / "many.json").tasks == 10_000
    assert service.progress(db, None, NOW).total == 10_000
    assert agrees(db)


def test_an_export_leaves_a_link_and_a_pipe_what_they_are(full: Database, tmp_path: Path) -> None:
    link, pipe = tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to("real.json")
    transfer.export_file(full, str(link), NOW)
    assert link.is_symlink()
    written = (tmp_path / "real.json").read_text()
    assert json.loads(written)["tasks"]
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    transfer.export_file(full, str(pipe), NOW)
    assert reader.communicate(timeout=20)[0] == written
    assert pipe.is_fifo()
    kept = tmp_path / "kept"
    kept.write_text("precious\n")
    with kept.open("a") as file:
        transfer.export_file(full, f"/dev/fd/{file.fileno()}", NOW)
    assert kept.read_text() == f"precious\n{written}"


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_states_that_no_step_leads_to_make_the_round_trip_too(
    full: Database, empty: Database, tmp_path: Path, suffix: str
) -> None:
    odd = [row[0] for row in full.all("SELECT id FROM tasks WHERE state = 'PENDING' LIMIT 2")]
    assert len(odd) == 2
    with full.write():
        full.execute("UPDATE tasks SET state = 'IN_PROGRESS', assignee = NULL WHERE id = ?", (odd[0],))
        full.execute("UPDATE tasks SET state = 'APPROVED', branch = NULL WHERE id = ?", (odd[1],))
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    transfer.export_file(full, str(first), NOW)
    _import(empty, first)
    transfer.export_file(empty, str(second), NOW)
    assert second.read_text() == first.read_text()
    assert all(state in first.read_text().partition('"tasks"' if suffix == "json" else "\n")[0] for state in odd)
