"""The command behind every hook starts by itself, wherever it stands, and a guard that cannot start says no."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.runtimes.hooks import HOOKS, PRE_TOOL, START, hook_command, hook_file


def call(argv: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, env={})


@pytest.mark.parametrize("event", [hook.event for hook in HOOKS])
def test_a_hook_that_cannot_start_stops_a_tool_and_nothing_else(event: str, tmp_path: Path) -> None:
    done = call(hook_command(event, "rookery.nothing_of_that_name"), tmp_path)
    assert done.returncode == (2 if event == PRE_TOOL else 1)
    assert "cannot start" in done.stderr


@pytest.mark.slow
def test_a_guard_without_an_answer_in_time_says_no(tmp_path: Path) -> None:
    slow = Path(START).read_text().replace("SECONDS = 10", "SECONDS = 1")
    start = tmp_path / "a" / "b" / "start.py"
    start.parent.mkdir(parents=True)
    start.write_text(slow)
    (tmp_path / "sleeping.py").write_text("import time\n\ndef main():\n    time.sleep(60)\n")
    done = call((sys.executable, "-I", "-S", str(start), "sleeping", PRE_TOOL), tmp_path)
    assert done.returncode == 2
    assert "in time" in done.stderr


def test_nothing_is_taken_from_the_folder_that_it_is_called_in(tmp_path: Path) -> None:
    for name in ("rookery", "apsw", "json", "sitecustomize", "posix"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the folder')\n")
    argv = hook_command("stop")
    assert os.path.isabs(argv[0])
    done = call(argv, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def write_file(folder: Path, text: str) -> Path:
    path = folder / "rook hook"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("event", "status"), [(PRE_TOOL, 2), ("stop", 1)])
def test_the_file_starts_the_same(event: str, status: int, tmp_path: Path) -> None:
    file = write_file(tmp_path, hook_file("rookery.nothing_of_that_name"))
    done = call(("/bin/sh", str(file), event), tmp_path)
    assert done.returncode == status
    assert "cannot start" in done.stderr


@pytest.mark.parametrize("gone", ["START", "sys.executable"])
@pytest.mark.parametrize(("event", "status"), [(PRE_TOOL, 2), ("stop", 1)])
def test_the_file_lets_no_tool_through_when_rookery_was_moved(
    gone: str, event: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"rookery.runtimes.hooks.{gone}", "/nowhere/it's here; exit 0")
    file = write_file(tmp_path, hook_file())
    done = call(("/bin/sh", str(file), event), tmp_path)
    assert done.returncode == status
    reason, way = done.stderr.splitlines()
    assert "not installed any more" in reason
    assert way.startswith("  instead: end your turn")
