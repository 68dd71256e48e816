"""A child is read while it runs, and its end is the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from process_tools import Mark, written_pid
from rookery.base.errors import ProgramFailed
from rookery.processes import child
from rookery.processes.proctree import end_tree, is_alive
from rookery.processes.python import module_command


def test_input_larger_than_a_pipe_meets_output_larger_than_a_pipe(mark: Mark) -> None:
    text = "x" * 99 + "\n"
    one = child.start(["tee", "/dev/stderr"], env=mark.env, stdin=text * 20_000)
    assert sum(len(line) == 99 for line in one.lines(30)) == 20_000
    assert one.wait(5) == 0
    assert one.last_output.splitlines() == ["x" * 99] * 12
    one.close()


@pytest.mark.parametrize("can_tell", [True, False])
def test_what_is_left_behind_with_the_pipe_does_not_hold_us(
    can_tell: bool, mark: Mark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_tell:
        monkeypatch.delattr("os.pidfd_open")
    path = tmp_path / "pid"
    one = child.start(["/bin/sh", "-c", f"sleep 300 & echo $! > {path}; echo last; exit 3"], env=mark.env)
    assert list(one.lines(30)) == ["last"]
    assert one.wait(5) == 3
    assert is_alive(written_pid(path))
    assert end_tree(None, mark.pair, 0) == []
    one.close()


def test_bytes_that_are_no_text_and_a_last_line_without_an_end(mark: Mark) -> None:
    one = child.start(["printf", r"a\377b\nlast"], env=mark.env)
    assert list(one.lines(30)) == ["a\N{REPLACEMENT CHARACTER}b", "last"]
    assert one.wait(5) == 0
    one.close()


def test_a_child_that_prints_nothing_for_too_long_is_reported(mark: Mark) -> None:
    one = child.start(["sleep", "300"], env=mark.env)
    with pytest.raises(ProgramFailed, match="did not end in time"):
        list(one.lines(0.2))
    assert one.wait(0) is None
    assert end_tree(one.identity, None, 0) == []
    assert one.wait(5) == -9
    one.close()


def test_talking_to_a_child(mark: Mark) -> None:
    one = child.start(["cat"], env=mark.env, talks=True)
    lines = one.lines(30)
    one.send("one\n")
    assert next(lines) == "one"
    one.send("two\n")
    assert next(lines) == "two"
    one.close_input()
    assert list(lines) == []
    assert one.wait(5) == 0
    with pytest.raises(ProgramFailed, match="nothing more"):
        one.send("three\n")
    one.close()


def test_a_program_that_is_not_there_comes_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="is not installed") as caught:
        child.start(["no-such-program"])
    assert "PATH" in caught.value.hint
    with pytest.raises(ProgramFailed, match="is gone"):
        child.start(["true"], cwd=str(tmp_path / "gone"))


def test_our_own_modules_start_where_others_of_their_names_lie(mark: Mark, tmp_path: Path) -> None:
    for name in ("rookery.py", "argparse.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong one')")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "rookery.py").write_text("raise SystemExit('the wrong one')")
    env = {**mark.env, "PYTHONPATH": "src"}
    one = child.start([*module_command("rookery.cli.main", sys.executable), "--version"], cwd=str(tmp_path), env=env)
    assert [line.split()[0] for line in one.lines(30)] == ["rook"], one.last_output
    assert one.wait(5) == 0
    one.close()


def test_one_that_has_said_everything_can_be_waited_for_less_long(mark: Mark) -> None:
    one = child.start(["/bin/sh", "-c", "echo said; exec sleep 300"], env=mark.env)
    lines = one.lines(200)
    assert next(lines) == "said"
    one.hasten(0.05)
    with pytest.raises(ProgramFailed, match="did not end in time"):
        next(lines)
    assert end_tree(one.identity, mark.pair, 0) == []
    one.close()


def slowly(lines: Iterator[str]) -> Iterator[str]:
    """Read more slowly than the program prints, so that the pipe is never empty."""
    for line in lines:
        time.sleep(0.0002)
        yield line


def test_a_program_that_prints_all_the_time_is_reported_too(mark: Mark) -> None:
    one = child.start(["sh", "-c", "while :; do echo line; done"], env=mark.env)
    with pytest.raises(ProgramFailed, match="did not end in time"):
        list(slowly(one.lines(0.3)))
    assert end_tree(one.identity, None, 0) == []
    assert one.wait(5) == -9
    one.close()
