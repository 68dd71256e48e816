"""A detached child has nothing of its starter's, outlives it, and costs little to start."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from process_tools import Mark, wait_until, written_pid
from rookery.base.errors import ProgramFailed
from rookery.processes import proctable, spawning
from rookery.processes.proctree import end_tree, identify, is_alive
from rookery.processes.spawning import start_detached


def test_it_has_a_session_a_folder_and_streams_of_its_own(mark: Mark, tmp_path: Path) -> None:
    folder = tmp_path / "it's; a $HOME"
    folder.mkdir()
    output = tmp_path / "log"
    output.write_text("earlier\n")
    argv = ["/bin/sh", "-c", 'pwd -P; echo "$1" >&2; cat; exec sleep 300', "sh", "a;b 'c' $X"]
    one = start_detached(argv, cwd=str(folder), env=mark.env, output=str(output))
    wait_until(lambda: len(output.read_text().splitlines()) == 3)
    assert output.read_text().splitlines() == ["earlier", str(folder), "a;b 'c' $X"]
    assert os.getsid(one.pid) == one.pid
    assert is_alive(one)
    assert end_tree(one, mark.pair, 0) == []


def test_it_outlives_its_starter_and_holds_nothing_of_it(mark: Mark, tmp_path: Path) -> None:
    code = """
import os, sys
from rookery.processes.spawning import start_detached
read, write = os.pipe()
os.set_inheritable(write, True)
start_detached(["/bin/sh", "-c", "echo $$; exec sleep 300"], cwd="/", env=os.environ, output=sys.argv[1])
os.close(write)
assert os.read(read, 1) == b""  # would wait for ever if the child held the other end
"""
    env = {**mark.env, "PYTHONPATH": str(Path(spawning.__file__).parents[2])}
    path = tmp_path / "log"
    done = subprocess.run([sys.executable, "-S", "-c", code, str(path)], env=env, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    one = written_pid(path)
    assert end_tree(one, mark.pair, 0) == []


def test_a_lock_that_is_handed_over_ends_with_the_child(mark: Mark, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    one = start_detached(["sleep", "300"], cwd="/", env=mark.env, output=str(tmp_path / "log"), keep=[lock])
    os.close(lock)
    with open(tmp_path / "lock") as another:
        with pytest.raises(BlockingIOError):
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert end_tree(one, mark.pair, 0) == []
        fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_it_can_be_interrupted_though_its_starter_cannot(mark: Mark, tmp_path: Path) -> None:
    code = """
import os, signal, sys
from rookery.processes.spawning import start_detached
signal.signal(signal.SIGINT, signal.SIG_IGN)
start_detached(["/bin/sh", "-c", "echo $$; exec sleep 300"], cwd="/", env=os.environ, output=sys.argv[1])
"""
    env = {**mark.env, "PYTHONPATH": str(Path(spawning.__file__).parents[2])}
    path = tmp_path / "log"
    subprocess.run([sys.executable, "-c", code, str(path)], env=env, check=True, timeout=30)
    one = written_pid(path)
    os.kill(one.pid, 2)
    wait_until(lambda: not is_alive(one))


def test_a_long_lived_starter_keeps_no_zombies(mark: Mark, tmp_path: Path) -> None:
    output = str(tmp_path / "log")
    first = start_detached(["true"], cwd="/", env=mark.env, output=output)
    wait_until(lambda: identify(first.pid) is None)
    second = start_detached(["true"], cwd="/", env=mark.env, output=output)
    assert proctable.read_one(first.pid) is None
    wait_until(lambda: not is_alive(second))


def test_what_cannot_be_started_is_reported(mark: Mark, tmp_path: Path) -> None:
    output = str(tmp_path / "log")
    with pytest.raises(ProgramFailed, match="not installed"):
        start_detached(["no-such-program"], cwd="/", env=mark.env, output=output)
    with pytest.raises(ProgramFailed, match="is gone"):
        start_detached(["true"], cwd=str(tmp_path / "gone"), env=mark.env, output=output)
    with pytest.raises(ProgramFailed, match="cannot start true"):
        start_detached(["true"], cwd="/", env=mark.env, output=str(tmp_path / "gone" / "log"))
