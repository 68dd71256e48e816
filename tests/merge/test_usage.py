"""What a clean landing uses: real git processes and real write transactions of the whole command are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from conftest import git
from rookery.base.errors import UntrustedState
from rookery.cli.main import main
from rookery.config import steps
from rookery.ops.state_owner import check_state

from .yard import Yard

MOST_GITS = 8
MOST_WRITES = 4


class Used(NamedTuple):
    """What a command has used."""

    gits: list[str]
    statements: list[str]

    @property
    def writes(self) -> int:
        return sum(sql == "BEGIN IMMEDIATE" for sql in self.statements)


@contextmanager
def counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Used]:
    """Every git that any process starts, and every statement of every connection that is opened."""
    folder.mkdir()
    used = Used([], [])

    def note(_cursor: object, sql: str, _values: object) -> bool:
        used.statements.append(sql)
        return True

    def trace(connection: apsw.Connection) -> None:
        connection.set_exec_trace(note)

    hooks: list[Any] = apsw.connection_hooks
    hooks.append(trace)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_TRACE2_EVENT", str(folder))
        try:
            yield used
        finally:
            hooks.remove(trace)
    events = (json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines())
    used.gits.extend(" ".join(event["argv"]) for event in events if event["event"] == "start")


def land(yard: Yard, branch: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Used:
    monkeypatch.chdir(yard.folder)
    with counted(folder, monkeypatch) as used:
        assert main(["merge", "--branch", branch]) == 0
    return used


@pytest.mark.parametrize("case", ["first", "base moved on", "in a linked worktree too"])
def test_a_clean_landing_uses_little(
    yard: Yard, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    yard.branch("one", one_txt="1\n")
    assert yard.rook("task", "list").status == 0  # the first command of all writes down where the project is
    if case != "first":  # what landed meanwhile, and a landing before
        yard.branch("other", other_txt="o\n")
        assert yard.merge("--branch", "other").status == 0
        yard.commit(mine_txt="m\n")
    if case == "in a linked worktree too":
        git(yard.folder, "switch", "-q", "--detach")
        git(yard.folder, "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    used = land(yard, "one", tmp_path / "traces", monkeypatch)
    assert yard.states()["one"] == "landed"
    assert yard.show("one.txt") == "1"
    place = tmp_path / "linked" if "linked" in case else yard.folder
    assert (place / "one.txt").read_text() == "1\n"
    assert git(place, "status", "--porcelain") == ""
    assert len(used.gits) <= MOST_GITS, used.gits
    assert used.writes <= MOST_WRITES, used.statements
    assert any("update-ref" in command for command in used.gits)  # so they are really seen
    capsys.readouterr()


def test_a_landing_tells_the_next_one_what_it_knows_of_the_index(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        yard.branch(name, **{f"{name}_txt": "1\n"})
    assert yard.merge("--branch", "one").status == 0
    used = land(yard, "two", tmp_path / "traces", monkeypatch)
    assert yard.show("two.txt") == "1"
    assert not [command for command in used.gits if "ls-files" in command], used.gits
    capsys.readouterr()


def test_state_that_was_added_to_the_index_meanwhile_is_not_taken_for_looked_at(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    yard.branch("one", one_txt="1\n")

    def add(step: str) -> None:
        if step == "landing recorded":
            git(yard.folder, "add", "-f", ".rookery/rookery.db")

    monkeypatch.setattr(steps, "reached", add)
    monkeypatch.chdir(yard.folder)
    assert main(["merge", "--branch", "one"]) == 0
    assert yard.show("one.txt") == "1"
    with pytest.raises(UntrustedState):
        check_state(str(yard.folder))
    capsys.readouterr()
