"""A run of the tests fails when it leaves a daemon behind, and ends that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemons import daemons_under
from support import child_environ

_CARELESS = """
from rookery.daemon.start import start_daemon

def test_that_forgets_its_daemon(project):
    # The fixture ends the daemon of the project that it made, and knows of no other.
    start_daemon(str(project.rename(project.with_name("elsewhere")) if {forgets} else project))
"""


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [True, False])
def test_the_run_fails_if_a_daemon_is_left(tmp_path: Path, forgets: bool) -> None:
    (tmp_path / "test_careless.py").write_text(_CARELESS.format(forgets=forgets))
    tests = str(Path(__file__).parents[1])
    env = child_environ()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-c", os.devnull, "-n", "0"),
            *("--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "base"), "test_careless.py"),
        ],
        cwd=tmp_path,
        env={**env, "PYTHONPATH": os.pathsep.join((env["PYTHONPATH"], tests))},
        capture_output=True,
        timeout=120,
        check=False,
    )
    output = done.stdout.decode()
    assert (done.returncode != 0) is forgets, output
    assert ("daemons were left behind" in output) is forgets
    assert "1 passed" in output
    assert daemons_under(tmp_path) == []
