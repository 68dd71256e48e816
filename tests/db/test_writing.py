"""The check of the tests themselves: no file is touched, and no process started, within a write transaction."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.base import call as calls
from rookery.db.database import Database
from rookery.db.pool import Pool
from rookery.events.telemetry import Telemetry
from rookery.processes.process import run
from served import make_call
from support import add

_WORK: dict[str, Callable[[Path], object]] = {
    "writing": lambda folder: (folder / "new").write_text("x"),
    "reading": lambda folder: (folder / "there").read_text(),
    "a low-level open": lambda folder: os.open(folder / "there", os.O_RDONLY),
    "making a folder": lambda folder: (folder / "sub").mkdir(),
    "walking": lambda folder: list(os.walk(folder)),
    "listing": os.listdir,
    "renaming": lambda folder: (folder / "there").rename(folder / "gone"),
    "deleting": lambda folder: (folder / "there").unlink(),
    "looking at processes": lambda _: Path("/proc/self/stat").read_text(),
    "a child": lambda _: subprocess.run(["true"], check=True),
    "a child of ours": lambda _: run(["true"]),
}


@pytest.mark.parametrize("work", _WORK)
def test_work_within_a_write_transaction_fails_the_test(db: Database, tmp_path: Path, work: str) -> None:
    (tmp_path / "there").write_text("x")
    with pytest.raises(RuntimeError, match="inside a write transaction"), db.write():
        _WORK[work](tmp_path)
    with db.read():
        (tmp_path / "new").write_text("x")
    assert (tmp_path / "there").exists()


def test_an_inner_transaction_of_another_file_does_not_end_the_check(db: Database, tmp_path: Path) -> None:
    telemetry = Telemetry(str(tmp_path / "telemetry.db"))
    with db.write():
        with telemetry.db.write():
            pass
        with pytest.raises(RuntimeError):
            (tmp_path / "new").write_text("x")
    telemetry.close()
    (tmp_path / "new").write_text("x")


def test_threads_that_share_a_commit_are_looked_at_too(db: Database, tmp_path: Path) -> None:
    errors: list[str] = []

    def write() -> None:
        call = make_call()
        call.connections = Pool()
        call.environ = os.environ
        with calls.serving(call):
            mine = Database.open(db.path)
            try:
                with mine.write():
                    os.listdir(tmp_path)
            except RuntimeError as error:
                errors.append(str(error))
            os.listdir(tmp_path)
            mine.close()
        call.connections.close()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_a_module_may_be_loaded_and_other_threads_may_do_as_they_like(db: Database, tmp_path: Path) -> None:
    (tmp_path / "loaded_late.py").write_text("VALUE = 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        with db.write():
            add(db)
            assert __import__("loaded_late").VALUE == 1
            thread = threading.Thread(target=(tmp_path / "new").write_text, args=("x",))
            thread.start()
            thread.join()
    finally:
        sys.path.remove(str(tmp_path))
    assert (tmp_path / "new").read_text() == "x"
