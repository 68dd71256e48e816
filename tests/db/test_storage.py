"""Real file systems that cannot be written: read-only and full, each mounted for one test alone."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from rookery.db.database import Database
from rookery.tasks.history import agrees
from support import Ran, add, child_environ, everything, rook_argv


def _mounts_work() -> bool:
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, timeout=20, check=False
    )
    return done.returncode == 0


mounted = pytest.mark.skipif(not _mounts_work(), reason="mounting in a namespace of its own is not permitted here")


def _rook(*words: str) -> str:
    return shlex.join(str(word) for word in rook_argv(*words, "--json"))


def _in_namespace(folder: Path, script: str) -> Ran:
    """Run a script with mounts of its own; they are gone with it."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", script],
        cwd=folder,
        env=child_environ(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@mounted
@pytest.mark.parametrize("words", [["task", "create", "x"], ["task", "list"], ["data", "export", "x.json"]])
def test_a_read_only_file_system(project: Path, words: list[str]) -> None:
    database = Database.open(str(project / ".rookery" / "rookery.db"))
    add(database)
    before = everything(database)
    database.close()
    mount = f"mount --bind {project} {project} && mount -o remount,ro,bind {project} && cd {project}"
    ran = _in_namespace(project, f"{mount} && {_rook(*words)}")
    database = Database.open(str(project / ".rookery" / "rookery.db"))
    assert everything(database) == before
    database.close()
    assert ran.status == 1
    assert ran.error["code"] in {"storage_read_only", "storage_unavailable", "io"}
    assert ran.error["hint"]
    assert not list((project / ".rookery").glob("logs"))


@mounted
def test_a_full_disk(project: Path, tmp_path: Path) -> None:
    Database.create(str(tmp_path / "copy.db")).close()
    kept = tmp_path / "after.db"
    state = project / ".rookery"
    create = _rook("task", "create", "x", "--description", "-")
    script = f"""
        mount -t tmpfs -o size=1m none {state}
        cp {tmp_path}/copy.db {state}/rookery.db
        cd {project}
        {_rook("task", "create", "first")} > /dev/null
        status=0
        head -c 2000000 /dev/zero | tr '\\0' x | {create} || status=$?
        rm -f {state}/*.log
        {_rook("task", "list")} > {tmp_path}/list.json
        cp {state}/rookery.db {kept}
        test ! -e {state}/rookery.db-wal || cp {state}/rookery.db-wal {kept}-wal
        exit $status
    """
    ran = _in_namespace(project, script)
    assert ran.status == 1, ran
    assert ran.error["code"] in {"storage_full", "storage_io"}
    assert ran.error["hint"]
    assert Ran(0, (tmp_path / "list.json").read_bytes(), b"").data[0]["title"] == "first"
    database = Database.open(str(kept))
    assert database.value("SELECT count(*) FROM tasks") == 1
    assert database.value("PRAGMA integrity_check") == "ok"
    assert agrees(database)
    database.close()


@mounted
def test_a_full_disk_while_the_database_is_made(tmp_path: Path) -> None:
    code = (
        "import sys; from rookery.db.database import Database\n"
        "try: Database.create(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, getattr(error, 'code', ''))"
    )
    python = str(rook_argv()[0])
    script = f"mount -t tmpfs -o size=40k none {tmp_path} && {shlex.join([python, '-c', code])} {tmp_path}/r.db"
    ran = _in_namespace(tmp_path.parent, f"{script} && ls {tmp_path}")
    assert ran.out.decode().split() in (["StorageFailed", "storage_full"], ["StorageFailed", "storage_io"])


@pytest.mark.parametrize(
    ("spoil", "code"),
    [("newer", "storage_newer"), ("text", "storage_damaged"), ("missing", "not_initialised")],
)
def test_the_command_line_says_what_is_wrong_with_the_file(project: Path, spoil: str, code: str) -> None:
    path = project / ".rookery" / "rookery.db"
    if spoil == "newer":
        database = Database.open(str(path))
        database.execute("PRAGMA user_version = 99")
        database.close()
    elif spoil == "text":
        path.write_text("no database at all\n" * 300)
    else:
        path.unlink()
    before = path.read_bytes() if path.exists() else None
    ran = subprocess.run(rook_argv("--json", "task", "list"), cwd=project, env=child_environ(), capture_output=True)
    error = Ran(ran.returncode, ran.stdout, ran.stderr).error
    assert (ran.returncode, error["code"], bool(error["hint"])) == (1, code, True)
    assert (path.read_bytes() if path.exists() else None) == before
