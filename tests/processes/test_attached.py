"""A child on our own streams."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rookery.base.errors import ProgramFailed
from rookery.processes.spawning import exit_status, spawn
from support import wait_until

ENV = {"PATH": os.defpath, "WHO": "me"}


def shell(script: str, keep: tuple[int, ...] = ()) -> int:
    return spawn(["sh", "-c", script], env=ENV, keep=keep)


def wait(pid: int) -> int:
    statuses: list[int] = []

    def has_ended() -> bool:
        status = exit_status(pid)
        statuses.extend(() if status is None else (status,))
        return bool(statuses)

    wait_until(has_ended)
    return statuses[0]


def test_its_environment_and_status_are_what_was_passed(tmp_path: Path) -> None:
    assert wait(shell(f"echo $WHO $HOME > '{tmp_path}/out'; exit 7")) == 7
    assert (tmp_path / "out").read_text() == "me\n"


def test_it_inherits_no_file_but_those_to_keep(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    assert wait(shell(f"echo kept > /proc/self/fd/{writing}; ls /proc/self/fd > '{tmp_path}/out'", (writing,))) == 0
    os.close(writing)
    assert os.read(reading, 100) == b"kept\n"
    os.close(reading)
    numbers = {int(name) for name in (tmp_path / "out").read_text().split()}
    assert reading not in numbers - {3}
    assert writing in numbers


def test_a_signal_is_reported_as_a_shell_does() -> None:
    assert wait(shell("kill -9 $$")) == 128 + signal.SIGKILL


def test_a_child_that_runs_has_no_status_yet(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    pid = shell(f"read x < /proc/self/fd/{reading}", (reading,))
    assert exit_status(pid) is None
    os.close(reading)
    os.close(writing)
    assert wait(pid) == 1


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ProgramFailed, match="nothing-like-it is not installed"):
        spawn(["nothing-like-it"], env=ENV)
