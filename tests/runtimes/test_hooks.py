"""The command behind every hook starts by itself, wherever it stands, and a guard that cannot start says no."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rookery.runtimes.hooks import HOOKS, PRE_TOOL, hook_command


def call(argv: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, env={})


@pytest.mark.parametrize("event", [hook.event for hook in HOOKS])
def test_a_hook_that_cannot_start_stops_a_tool_and_nothing_else(event: str, tmp_path: Path) -> None:
    done = call(hook_command(event, "rookery.nothing_of_that_name"), tmp_path)
    assert done.returncode == (2 if event == PRE_TOOL else 1)
    assert "cannot start" in done.stderr


@pytest.mark.slow
def test_a_guard_without_an_answer_in_time_says_no(tmp_path: Path) -> None:
    argv = hook_command(PRE_TOOL, "json.tool", seconds=1)
    slow = argv[4].replace("from json.tool import main", "import time; main = lambda: time.sleep(60)")
    done = call((*argv[:4], slow, *argv[5:]), tmp_path)
    assert done.returncode == 2
    assert "in time" in done.stderr


def test_the_module_gets_its_event_and_the_database_library(tmp_path: Path) -> None:
    for name in ("rookery", "apsw", "json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the folder')\n")
    argv = hook_command("stop", "json.tool")
    assert os.path.isabs(argv[0])
    inner = argv[4].replace("from json.tool import main", "import apsw, rookery; main = lambda: print(sys.argv)")
    done = call((*argv[:4], inner, *argv[5:]), tmp_path)
    assert (done.stdout, done.returncode) == ("['-c', 'stop']\n", 0), done.stderr
