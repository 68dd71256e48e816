"""What `.ci/run` makes of failures: a real pytest, with the plugin, over a few tests in a folder of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from support import child_environ

ROOT = Path(__file__).parents[2]
# A test that fails as long as its file is not there, and makes it.
_ONCE = """
import pathlib
def test_{name}():
    seen = pathlib.Path(__file__).with_suffix(".{name}")
    known = seen.exists()
    seen.touch()
    assert known
"""
_BROKEN_SET_UP = """
import pathlib, pytest
@pytest.fixture
def shaky():
    seen = pathlib.Path(__file__).with_suffix(".shaky")
    if not seen.exists():
        seen.touch()
        raise OSError("not yet")
def test_shaky(shaky):
    pass
"""
_GOOD = "def test_good():\n    pass\n"
_BAD = "def test_bad():\n    assert False\n"


def run(folder: Path, *tests: str, workers: int = 0, more: Mapping[str, str] | None = None) -> tuple[int, list[str]]:
    """The exit status and what pytest printed; `more` is added to its environment."""
    (folder / "pytest.ini").touch()
    for number, text in enumerate(tests):
        path = folder / "tests" / f"part{number}" / f"test_{number}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    argv = [sys.executable, "-m", "pytest", "-p", "dev.ci", "-n", str(workers), "-p", "no:cacheprovider"]
    env = child_environ({"PYTHONPATH": str(ROOT), **(more or {})})
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_one_that_fails_once_is_flaky_and_forgiven(tmp_path: Path, workers: int) -> None:
    status, lines = run(tmp_path, _GOOD, _ONCE.format(name="once"), workers=workers)
    assert status == 0
    assert "FLAKY tests/part1/test_1.py::test_once" in lines
    assert "1 passed, 1 flaky in" in lines[-1]
    assert any("assert known" in line for line in lines), "why it failed is shown"


@pytest.mark.slow
def test_so_is_one_whose_set_up_fails_once(tmp_path: Path) -> None:
    status, lines = run(tmp_path, _GOOD, _BROKEN_SET_UP)
    assert status == 0
    assert "1 passed, 1 flaky in" in lines[-1]


@pytest.mark.slow
def test_one_that_fails_again_is_a_failure(tmp_path: Path) -> None:
    status, lines = run(tmp_path, _GOOD, _BAD, _ONCE.format(name="once"))
    assert status == 1
    assert "FLAKY tests/part2/test_2.py::test_once" in lines
    assert "1 failed, 1 passed, 1 flaky in" in lines[-1]


def test_three_that_fail_once_are_too_many(tmp_path: Path) -> None:
    status, lines = run(tmp_path, _GOOD, *(_ONCE.format(name=name) for name in ("one", "two", "three")))
    assert status == 1
    assert "3 failed, 1 passed in" in lines[-1]
    assert "3 tests failed; more than 2 are not tried again" in lines


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    status, _ = run(tmp_path, _GOOD, "import nothing_of_that_name\n")
    assert status == 2


@pytest.mark.slow
def test_what_is_slow_and_not_marked_is_listed(tmp_path: Path) -> None:
    slow = "import pytest, time\ndef test_slow():\n    time.sleep(1.1)\n"
    marked = f"{slow.splitlines()[0]}\n@pytest.mark.slow\ndef test_marked():\n    time.sleep(1.1)\n"
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n")
    status, lines = run(tmp_path, _GOOD, slow, marked, workers=2)
    assert status == 0
    listed = [line.split()[1] for line in lines if line.startswith("SLOW ")]
    assert listed == ["tests/part1/test_1.py::test_slow"]


@pytest.mark.slow
def test_the_time_is_shown_by_folder(tmp_path: Path) -> None:
    slow = "import time\ndef test_slow():\n    time.sleep(0.4)\n"
    status, lines = run(tmp_path, _GOOD, slow)
    assert status == 0
    table = lines[next(number for number, line in enumerate(lines) if "time by folder" in line) + 1 :]
    assert [line.split()[2:] for line in table[:3]] == [
        ["1", "tests", "tests/part1"],
        ["1", "tests", "tests/part0"],
        ["2", "tests", "in", "all"],
    ]
    assert 0.4 <= float(table[0].split()[0]) < 10


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_what_ran_no_command_does_not_run_again_through_the_daemon(tmp_path: Path, workers: int) -> None:
    command = """
        def test_command(request):
            request.node.user_properties.append(("commands", 1))
    """
    daemon = {"ROOKERY_TESTS_IN": "daemon"}
    assert "2 passed" in run(tmp_path, _GOOD, dedent(command), workers=workers, more=daemon)[1][-1], "nothing is known"
    assert "2 passed" in run(tmp_path, workers=workers)[1][-1]
    assert "1 passed" in run(tmp_path, workers=workers, more=daemon)[1][-1]
    (tmp_path / "tests" / "part1" / "test_1.py").unlink()
    assert run(tmp_path, workers=workers, more=daemon)[0] == pytest.ExitCode.NO_TESTS_COLLECTED
