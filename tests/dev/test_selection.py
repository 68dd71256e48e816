"""Which tests run with --fast, by default and with --all: a real pytest over a few tests in a folder of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import child_environ

ROOT = Path(__file__).parents[2]
_TESTS = """
import pytest
def test_plain():
    pass
@pytest.mark.slow
def test_slow():
    pass
@pytest.mark.parametrize("kind", ["git", "jj", "jj-colocated"])
@pytest.mark.parametrize("number", range(6))
def test_backend(kind, number):
    pass
@pytest.mark.sweep
@pytest.mark.parametrize("step", range(9))
def test_step(step):
    pass
def test_steps(sample):
    assert len(sample(range(20), 5)) in (5, 20)
"""


def run(folder: Path, *more: str, test: str = "") -> tuple[list[str], str]:
    """The tests that ran, and the line about the others."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  sweep\n")
    (folder / "conftest.py").write_text("from selection import *\n")
    (folder / "test_it.py").write_text(_TESTS)
    argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"test_it.py{test}", *more]
    env = child_environ({"PYTHONPATH": str(ROOT / "tests")})
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    ran = [word for line in lines if "PASSED" in line for word in line.split() if word.startswith("test_it.py::")]
    return sorted(ran), next((line for line in lines if line.startswith("left out: ")), "")


def count(ran: list[str], text: str) -> int:
    return sum(text in test for test in ran)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_sample_of_every_sweep_runs_by_default(tmp_path: Path, workers: str) -> None:
    ran, summary = run(tmp_path, "-n", workers)
    assert (count(ran, "test_plain"), count(ran, "test_slow"), count(ran, "git]")) == (1, 1, 6)
    assert (count(ran, "jj"), count(ran, "test_step["), count(ran, "test_steps")) == (2, 2, 1)
    assert "left out: 22 cases of sweeps, 10 tests with jj that run with git too" in summary
    assert run(tmp_path, "-n", workers) == (ran, summary)


@pytest.mark.slow
def test_fast_leaves_out_what_is_slow(tmp_path: Path) -> None:
    ran, summary = run(tmp_path, "--fast")
    assert (count(ran, "test_plain"), count(ran, "test_slow"), count(ran, "jj")) == (1, 0, 0)
    assert "1 slow tests" in summary


@pytest.mark.slow
def test_all_leaves_out_nothing(tmp_path: Path) -> None:
    ran, summary = run(tmp_path, "--all")
    assert (len(ran), summary) == (30, "")


@pytest.mark.slow
def test_what_is_named_runs(tmp_path: Path) -> None:
    ran, _ = run(tmp_path, "--fast", test="::test_step")
    assert len(ran) == 9
