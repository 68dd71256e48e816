"""What killed processes leave on the disk: the next command removes it, and nothing that is still in use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Rook, git
from rookery.flows.workload import is_needed
from rookery.processes import owned_folders
from support import IN_DAEMON, child_environ, rook_argv, wait_until
from templates import init_project

# A clean filter of git that kills the process which has started git, and so that git outlives it.
_KILL_CALLER = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); cat"

_DEEDS = {
    "a snapshot": "vcs.snapshot('snapshots/bee/1', 'Turn 1')",
    "a difference": "vcs.patch()",
    "a trial merge": "trial = vcs.merging().on_trial(); kill(trial.__enter__().write_blob(b'x'))",
    "a changed tree": "kill(vcs.merging())",
}
_DEED = """
import os, signal, sys
from rookery.config.model import VcsConfig
from rookery.vcs.detect import open_vcs
def kill(merging):
    if not isinstance(merging, str):
        merging._read = lambda *args, **named: os.kill(os.getpid(), signal.SIGKILL)
        merging.replace_files('HEAD', {})
    os.kill(os.getpid(), signal.SIGKILL)
vcs = open_vcs(sys.argv[1], VcsConfig())
"""


@pytest.fixture
def rook(repo: Path) -> Rook:
    init_project(repo)
    return Rook(repo)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which has nothing else in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def left(rook: Rook) -> list[str]:
    """What lies in the project's scratch folder."""
    folder = rook.folder / ".rookery" / "scratch"
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def run_killed(rook: Rook, deed: str) -> None:
    """Something that is done with the repository, by a process that is killed on the way."""
    argv = [sys.executable, "-c", _DEED + _DEEDS[deed], str(rook.folder)]
    done = subprocess.run(argv, env=child_environ(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done


@pytest.mark.slow
@pytest.mark.parametrize("deed", _DEEDS)
def test_what_a_git_had_apart_goes_with_the_next_command(rook: Rook, temporary: Path, deed: str) -> None:
    git(rook.folder, "config", "filter.kill.clean", _KILL_CALLER)
    (rook.folder / ".git" / "info" / "attributes").write_text("new.txt filter=kill\n")
    (rook.folder / "new.txt").write_text("new\n")
    run_killed(rook, deed)
    assert rook("loop", "run").status == 0
    wait_until(lambda: not left(rook))
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_the_folder_of_a_killed_gate_run_goes_with_the_next_command(rook: Rook) -> None:
    settings = rook.folder / ".rookery" / "config.local.yaml"
    plain = "sandbox:\n  mode: off\ngates:\n  - name: g\n    run: 'true'\n"
    settings.write_text(plain + "provision:\n  ports: 0\n  setup: kill -9 $PPID\n")
    ran = subprocess.run(rook_argv("gate", "run"), cwd=rook.folder, env=child_environ(), check=False)
    assert ran.returncode == -signal.SIGKILL
    assert left(rook)
    assert rook("loop", "run").status == 0
    wait_until(lambda: not left(rook))
    settings.write_text(plain)
    assert rook("gate", "run").status == 0
    assert not left(rook)


@pytest.fixture
def holder(rook: Rook) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has a folder for an index of its own."""
    script = """
import sys, time
from rookery.vcs.temporary import temporary_folder
with temporary_folder(sys.argv[1], "index") as folder:
    print(folder, flush=True)
    time.sleep(1000)
"""
    argv = [sys.executable, "-c", script, str(rook.folder)]
    child = subprocess.Popen(argv, env=child_environ(), stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline().decode().startswith(str(rook.folder / ".rookery/scratch/index-"))
    yield child
    child.kill()
    child.communicate()


def facts(rook: Rook) -> list[dict[str, Any]]:
    leftovers: list[dict[str, Any]] = rook.json("loop", "explain").data["facts"]["leftovers"]
    return leftovers


@pytest.mark.slow
def test_what_a_living_process_needs_stays(rook: Rook, holder: subprocess.Popen[bytes]) -> None:
    assert rook("loop", "run").status == 0
    (leftover,) = facts(rook)
    assert leftover["is_left"] is False
    assert leftover["owner"]["pid"] == holder.pid
    assert len(left(rook)) == 2  # the folder and its note
    holder.kill()
    holder.wait()
    assert rook("loop", "run").status == 0
    assert left(rook) == []


@pytest.mark.slow
@pytest.mark.skipif(IN_DAEMON, reason="the daemon's loop is faster than the doctor")
def test_the_doctor_finds_it_too(rook: Rook, holder: subprocess.Popen[bytes]) -> None:
    def problems(*words: str) -> list[str]:
        checks = rook.json("doctor", "--category", "loop", *words).data["checks"]
        return [check["message"] for check in checks if check["status"] != "ok"]

    assert problems() == []
    holder.kill()
    holder.wait()
    path = rook.folder / ".rookery" / "run" / "loop.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:  # no other command may do it
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        assert problems() == ["its process was killed: remove scratch"]
        assert problems("--fix") == []
    assert left(rook) == []


def test_a_project_at_rest_needs_no_look(project: Path, holder_folder: str) -> None:
    """Neither without scratch folders, nor while their holders live."""
    from rookery.config.project import database_path
    from rookery.db.database import Database

    db = Database.open(database_path(str(project)))
    assert not is_needed(str(project), db)
    owned_folders.make(holder_folder)
    assert not is_needed(str(project), db)
    owned_folders.forget(holder_folder)
    assert is_needed(str(project), db)
    db.close()


@pytest.fixture
def holder_folder(project: Path) -> str:
    return str(project / ".rookery" / "scratch" / "mine")
