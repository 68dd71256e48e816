"""A child on streams that it is given."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rookery.base.errors import ProgramFailed
from rookery.processes.attached import spawn, wait

ENV = {"PATH": os.defpath, "WHO": "me"}


def shell(script: str, streams: tuple[int, int, int], **more: object) -> int:
    return spawn(["sh", "-c", script], env=ENV, streams=streams, **more)  # type: ignore[arg-type]


def test_streams_environment_and_status_are_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("input\n")
    with open(tmp_path / "in") as given, open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        pid = shell("cat; echo $WHO $HOME; echo oops >&2; exit 7", (given.fileno(), out.fileno(), err.fileno()))
        assert wait(pid) == 7
    assert (tmp_path / "out").read_text() == "input\nme\n"
    assert (tmp_path / "err").read_text() == "oops\n"


def test_streams_may_stand_in_each_others_place(tmp_path: Path) -> None:
    """Output to what is our standard input, and so on: nothing is overwritten on the way."""
    with open(tmp_path / "a", "w+") as one, open(tmp_path / "b", "w+") as two:
        low = [os.dup(each.fileno()) for each in (one, two)]
        assert wait(shell("echo out; echo err >&2", (low[0], low[1], low[0]))) == 0
        for each in low:
            os.close(each)
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("err\n", "out\n")


def test_nothing_else_is_inherited_but_what_is_kept(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(reading, False)
    with open(tmp_path / "out", "w") as out:
        pid = shell(f"echo kept > /proc/self/fd/{writing}; ls /proc/self/fd", (0, out.fileno(), 2), keep=(writing,))
        assert wait(pid) == 0
    os.close(writing)
    assert os.read(reading, 100) == b"kept\n"
    os.close(reading)
    numbers = {int(each) for each in (tmp_path / "out").read_text().split()}
    assert reading not in numbers - {3}
    assert writing in numbers


def test_a_signal_is_told_as_a_shell_does() -> None:
    pid = shell("kill -9 $$", (0, 1, 2), own_session=True)
    assert wait(pid) == 128 + signal.SIGKILL


def test_waiting_without_patience(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    pid = shell("read x", (reading, 1, 2))
    assert wait(pid, block=False) is None
    os.close(reading)
    os.close(writing)
    assert wait(pid) == 1


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(ProgramFailed, match="nothing-like-it is not installed"):
        spawn(["nothing-like-it"], env=ENV)
