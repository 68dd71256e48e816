"""Backups: whole copies, and a restore that a kill cannot cut in two."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from conftest import Rook, git
from den import DONE, Den
from disks import fill
from disks import small_disk as small_disk
from places import make_place
from rookery.base.errors import StorageFailed
from rookery.base.ids import handle
from rookery.config.environ import read_environ
from rookery.db import copies
from rookery.db.copies import copy_to, replace_content
from rookery.db.database import Database
from rookery.events.store import read
from rookery.ops.context import Context
from rookery.upkeep import backups
from rookery.upkeep.backups import list_backups
from support import add, run_together, start_python
from templates import copy_database, init_project


@pytest.fixture
def rook(repo: Path) -> Rook:
    init_project(repo)
    return Rook(repo)


def titles(rook: Rook) -> list[str]:
    return [task["title"] for task in rook.json("task", "list").data]


def back_up(rook: Rook) -> str:
    return str(rook.json("backup").data["name"])


def test_a_restore_brings_back_what_was_and_can_be_undone(rook: Rook) -> None:
    rook("task", "create", "first")
    name = back_up(rook)
    rook("task", "create", "second")
    restored = rook.json("restore", name, "--yes").data
    assert titles(rook) == ["first"]
    assert restored["kept"]["kind"] == "before-restore"
    rook("restore", restored["kept"]["name"], "--yes")
    assert sorted(titles(rook)) == ["first", "second"]
    assert rook("doctor", "--category", "location").status == 0
    db = rook.open()
    [event] = read(db, kinds=("project",))
    assert event.data["backup"] == restored["kept"]["name"]
    db.close()


def test_the_list_names_every_backup_and_marks_what_cannot_be_restored(rook: Rook) -> None:
    assert "No backups yet" in rook("restore").out.decode()
    name = back_up(rook)
    folder = rook.folder / ".rookery" / "backups"
    (folder / "20260101-000000-000-manual.db").write_bytes(b"no database")
    (folder / "tasks.json").write_text("{}")
    listed = rook.json("restore").data["backups"]
    assert [(backup["name"], backup["can_restore"]) for backup in listed] == [
        (name, True),
        ("20260101-000000-000-manual", False),
    ]
    assert "damaged" in rook("restore").out.decode()
    ran = rook("restore", "20260101", "--yes")
    assert (ran.status, "not a Rookery database" in ran.err.decode()) == (1, True)


@pytest.mark.parametrize(("name", "problem"), [("nothing", "no backup is called"), ("2", "2 backups are called")])
def test_a_name_must_fit_one_backup(rook: Rook, name: str, problem: str) -> None:
    back_up(rook)
    back_up(rook)
    ran = rook("restore", name, "--yes")
    assert (ran.status, problem in ran.err.decode(), "`rook restore`" in ran.err.decode()) == (1, True, True)


def test_without_a_terminal_a_restore_needs_yes(rook: Rook) -> None:
    name = back_up(rook)
    before = rook.count_events()
    ran = rook("restore", name)
    assert (ran.status, f"rook restore {name} --yes" in ran.err.decode()) == (2, True)
    assert rook.count_events() == before


def test_a_damaged_backup_changes_nothing(rook: Rook) -> None:
    rook("task", "create", "first")
    path = Path(rook.json("backup").data["path"])
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 20] = b"\xff" * 4096 * 17
    path.write_bytes(content)
    ran = rook("restore", path.stem, "--yes")
    assert ran.status == 1
    assert titles(rook) == ["first"]


def test_a_backup_of_a_newer_rookery_is_refused(rook: Rook) -> None:
    path = Path(rook.json("backup").data["path"])
    content = bytearray(path.read_bytes())
    content[60:64] = (9999).to_bytes(4, "big")
    path.write_bytes(content)
    ran = rook("restore", path.stem, "--yes")
    assert (ran.status, "newer Rookery (schema 9999" in ran.err.decode()) == (1, True)


def test_no_restore_while_an_agent_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place("git", tmp_path, monkeypatch)
    rook = Rook(place.root)
    place.add("ann", state="waiting")
    name = back_up(rook)
    ran = rook("restore", name, "--yes")
    assert (ran.status, "`rook stop ann`" in ran.err.decode()) == (1, True)


def test_agents_that_the_backup_has_alive_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place("git", tmp_path, monkeypatch)
    rook = Rook(place.root)
    place.add("ann", state="waiting")
    name = back_up(rook)
    rook("stop", "ann")
    git(place.root, "branch", "rook/bob/other")
    restored = rook.json("restore", name, "--yes").data
    assert restored["stopped"] == ["ann"]
    assert restored["unknown_branches"] == ["rook/bob/other"]
    [ann] = rook.json("status", "--all").data["ended"]
    assert (ann["state"], ann["outcome"]) == ("ended", "stopped")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["restore prepared", "restore kept", "session ended", "restored"])
def test_a_killed_restore_leaves_the_old_or_the_new_database(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place("git", tmp_path, monkeypatch)
    rook = Rook(place.root)
    place.add("ann", state="waiting")
    name = back_up(rook)
    rook("stop", "ann")
    rook("task", "create", "later")
    killed = rook("restore", name, "--yes", env={"ROOKERY_TEST_KILL": step})
    assert killed.status == -signal.SIGKILL
    assert titles(rook) == ([] if step == "restored" else ["later"])
    assert rook("doctor", "--category", "database").status == 0
    rook("restore", name, "--yes")
    assert titles(rook) == []
    assert not (place.root / ".rookery" / "restore.db").exists()


def test_only_the_newest_of_a_kind_are_kept(rook: Rook) -> None:
    config = rook.folder / ".rookery" / "config.local.yaml"
    config.write_text("backup: {keep: 2}\n")
    names = [back_up(rook) for _ in range(4)]
    assert [backup.name for backup in list_backups(str(rook.folder))] == names[:1:-1]


def test_a_backup_that_finds_no_room_leaves_nothing(small_disk: Path) -> None:
    path = str(small_disk / "rookery.db")
    copy_database(path)
    db = Database.open(path)
    with db.write():
        db.execute("INSERT INTO mail_groups VALUES (hex(zeroblob(4000000)), 'a', '')")
    fill(small_disk, 1_000_000)
    before = set(os.listdir(small_disk))
    with pytest.raises(StorageFailed) as caught:
        copy_to(db, str(small_disk / "copy.db"))
    assert caught.value.code == "storage_full"
    assert set(os.listdir(small_disk)) == before
    db.close()


def test_a_copy_that_fails_half_way_leaves_no_file(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: str) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(copies, "_sync", fail)
    before = set(os.listdir(tmp_path))
    with pytest.raises(Exception, match="No space left"):
        copy_to(db, str(tmp_path / "copy.db"))
    assert set(os.listdir(tmp_path)) == before


_WRITER = """
import sys
from rookery.db.database import Database
db = Database.open(sys.argv[1])
print("here", flush=True)
sys.stdin.readline()
for number in range(200):
    with db.write():
        db.execute("INSERT INTO mail_groups VALUES (?, 'a', '')", (f"{sys.argv[2]}-{number}",))
"""


@pytest.mark.slow
def test_content_is_replaced_while_others_write(db: Database, tmp_path: Path) -> None:
    add(db, "kept")
    copy_to(db, str(tmp_path / "copy.db"))
    writers = [start_python(_WRITER, db.path, name) for name in ("one", "two")]
    thread = threading.Thread(target=replace_content, args=(db.path, str(tmp_path / "copy.db")))
    thread.start()
    run_together(writers)
    thread.join()
    assert db.value("SELECT title FROM tasks") == "kept"
    assert db.value("PRAGMA integrity_check") == "ok"
    replace_content(db.path, str(tmp_path / "copy.db"))
    assert db.value("SELECT count(*) FROM mail_groups") == 0
    assert db.value("PRAGMA journal_mode") == "wal"


def damage(path: Path, how: str) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    if how == "missing":
        path.unlink()
    elif how == "pages":
        content = path.read_bytes()
        path.write_bytes(content[:8192] + b"x" * (len(content) - 8192))
    else:
        path.write_bytes(b"" if how == "empty" else b"x" * 50_000)


@pytest.mark.slow
def test_what_has_landed_since_is_named_though_its_branch_is_gone(repo: Path) -> None:
    den = Den(repo)
    task = den.task("Work", [{"edit": {"path": "a", "text": "a\n"}}, {"commit": "a"}, DONE])
    branch = den.sling(task, "--name", "ann")["branch"]
    den.wait_for("ann", "completed")
    name = back_up(den.rook)
    assert den.rook("review", "approve", task, "--merge").status == 0
    assert branch not in git(repo, "branch", "--list")
    restored = den.rook.json("restore", name, "--yes").data
    assert (restored["missing_branches"], restored["lost_landings"]) == ([branch], [branch])
    refused = den.rook.json("review", "approve", task, "--merge")
    assert f"`rook task complete {handle(task)}`" in refused.error["hint"]
    assert den.rook("task", "complete", task).status == 0
    assert den.rook.json("inbox").data["items"] == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["missing", "empty", "garbage", "pages"])
def test_a_damaged_database_is_moved_away_and_a_backup_takes_its_place(rook: Rook, how: str) -> None:
    rook("task", "create", "kept")
    name = back_up(rook)
    state = rook.folder / ".rookery"
    shutil.rmtree(state / "run", ignore_errors=True)  # as in a project that never had a daemon
    damage(state / "rookery.db", how)
    before = (state / "rookery.db").read_bytes() if how != "missing" else None
    assert [backup["name"] for backup in rook.json("restore").data["backups"]] == [name]
    restored = rook.json("restore", name, "--yes").data
    assert titles(rook) == ["kept"]
    assert rook("doctor", "--category", "database").status == 0
    folder = restored["damaged"]
    assert (Path(folder, "rookery.db").read_bytes() if folder else None) == before
    assert not list(state.glob("restore.db*"))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["restore prepared", "damaged file moved", "damaged file moved:3", "restored"])
def test_a_killed_restore_of_a_damaged_database_is_finished_by_the_next(rook: Rook, step: str) -> None:
    rook("task", "create", "kept")
    name = back_up(rook)
    (rook.folder / ".rookery" / "run").mkdir(exist_ok=True)
    damage(rook.folder / ".rookery" / "rookery.db", "pages")
    assert rook("restore", name, "--yes", env={"ROOKERY_TEST_KILL": step}).status == -signal.SIGKILL
    assert rook("restore", name, "--yes").status == 0
    assert titles(rook) == ["kept"]
    assert rook("doctor", "--category", "database").status == 0


@pytest.mark.parametrize(
    "change", ["CREATE TRIGGER x AFTER INSERT ON events BEGIN DELETE FROM tasks; END", "DROP TABLE turns"]
)
def test_a_backup_with_tables_or_triggers_that_are_not_ours_is_refused(rook: Rook, change: str) -> None:
    rook("task", "create", "kept")
    name = back_up(rook)
    with closing(apsw.Connection(str(rook.folder / ".rookery" / "backups" / f"{name}.db"))) as connection:
        connection.execute(change)
    ran = rook("restore", name, "--yes")
    assert (ran.status, "does not have Rookery's tables" in ran.err.decode()) == (1, True)
    assert titles(rook) == ["kept"]


@pytest.mark.slow
def test_a_daemon_that_has_the_damaged_database_open_ends(rook: Rook) -> None:
    on = {"ROOKERY_DAEMON": "on"}
    rook("task", "create", "kept", env=on)
    name = back_up(rook)
    path = rook.folder / ".rookery" / "rookery.db"
    path.write_bytes(path.read_bytes()[:4096] + b"x" * 100_000)
    assert rook("restore", name, "--yes", env=on).status == 0
    rook("task", "create", "later", env=on)
    assert titles(rook) == ["kept", "later"]
    rook("daemon", "stop")


def test_a_restore_keeps_what_was_written_until_it_replaced_everything(
    rook: Rook, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = back_up(rook)
    tries = 0

    def write_first(*args: Any) -> bool:
        nonlocal tries
        tries += 1
        if tries == 1:  # after the copy was made and everything was checked
            rook("task", "create", "late")
        return replace_content(*args)

    monkeypatch.setattr(backups, "replace_content", write_first)
    ctx = Context(cwd=str(rook.folder), environ=read_environ(), flags={})
    kept = backups.restore(ctx, name, lambda _plan: True).kept
    ctx.close()
    assert (tries, titles(rook)) == (2, [])
    assert kept is not None
    rook("restore", kept.name, "--yes")
    assert titles(rook) == ["late"]
