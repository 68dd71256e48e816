"""The journal of a runner: whole lines only, a lock that says that the runner is alive, and a disk that may be full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.sessions import journal
from support import child_environ, touch_database


@pytest.fixture
def root(tmp_path: Path) -> str:
    touch_database(tmp_path)
    return str(tmp_path)


def test_lines_are_read_once_and_only_when_they_are_whole(root: str) -> None:
    file = journal.create(root, "turn_1")
    writer = journal.Writer(file)
    writer.add(journal.RUNNER, pid=1)
    first, offset = journal.read(root, "turn_1")
    assert [line["kind"] for line in first] == ["runner"]
    os.write(file, b'{"v":1,"kind":"rec')
    assert journal.read(root, "turn_1", offset) == ([], offset)
    os.write(file, b'ord"}\n')
    rest, end = journal.read(root, "turn_1", offset)
    assert [line["kind"] for line in rest] == ["record"]
    assert journal.read(root, "turn_1", end) == ([], end)
    os.close(file)


def test_what_another_version_wrote_is_left_out(root: str) -> None:
    file = journal.create(root, "turn_1")
    os.write(file, b'{"v":2,"kind":"record"}\nno json\n[]\n{"v":1,"kind":"new","x":1}\n')
    assert [line["kind"] for line in journal.read(root, "turn_1")[0]] == ["new"]
    os.close(file)


def test_its_lock_goes_to_the_process_that_inherits_it(root: str) -> None:
    file = journal.create(root, "turn_1")
    assert journal.is_running(root, "turn_1")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[file]) as child:
        os.close(file)
        assert journal.is_running(root, "turn_1")
        child.kill()
    assert not journal.is_running(root, "turn_1")
    assert not journal.is_running(root, "turn_2")


def test_a_full_disk_costs_no_line(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = journal.create(root, "turn_1")
    writer = journal.Writer(file)
    real, is_full = os.write, [True]

    def write(handle: int, data: bytes) -> int:
        if is_full[0]:
            if handle == file and len(data) > 5:
                real(handle, data[:5])  # a part still fits
                is_full.append(True)
                return 5
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", write)
    writer.add(journal.RUNNER, pid=1)
    is_full[0] = False
    writer.add(journal.ENDED, status=0)
    monkeypatch.undo()
    assert [line["kind"] for line in journal.read(root, "turn_1")[0]] == ["runner", "ended"]
    os.close(file)


def test_a_project_that_has_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        journal.create(str(tmp_path / "gone"), "turn_1")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("program", "reads_yaml"),
    [
        ("turns.runner", False),
        ("turns.pane_program", False),
        ("merge.gates.gate_runner", False),
        ("merge.tiers.agent_runner", False),
        ("merge.tiers.bounds", False),
        ("sandbox.host", False),
        ("runtimes.scripted_agent.__main__", True),  # its scripts are YAML
    ],
)
def test_a_runner_never_loads_what_opens_the_database_or_starts_slowly(program: str, reads_yaml: bool) -> None:
    script = f"import sys, rookery.{program}; print(*sys.modules)"
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, env=child_environ(), capture_output=True, text=True, check=True)
    loaded = {name for module in done.stdout.split() for name in (module, module.partition(".")[0])}
    unwanted = {"apsw", "rookery.db", "pydantic"} | (set() if reads_yaml else {"yaml"})
    assert loaded & unwanted == set()


def test_a_long_journal_is_read_in_parts_of_whole_lines(root: str) -> None:
    file = journal.create(root, "turn_1")
    writer = journal.Writer(file)
    for number in range(50):
        writer.add(journal.RECORD, number=number, text="x" * (5_000 if number == 20 else 100))
    offset, parts = 0, []
    while (part := journal.read(root, "turn_1", offset, most=1_000))[0]:
        offset = part[1]
        parts.append([line["number"] for line in part[0]])
    assert [number for part in parts for number in part] == list(range(50))
    assert 4 < len(parts) < 10
    os.close(file)
