"""`rook init` on a terminal: it offers to try the gates on the base, and the project is made whatever comes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import git
from rookery.base import call
from rookery.config.environ import read_environ
from rookery.db.database import Database
from rookery.doctor.init_ops import init
from rookery.ops.context import Context
from rookery.ops.init import Initialised
from support import wait_until

pytestmark = pytest.mark.slow


class Terminal:
    """A person who answers every question alike, or presses Ctrl-C."""

    def __init__(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repo = repo
        self.answer: str | type[BaseException] = ""
        self.questions: list[str] = []
        monkeypatch.setattr(call, "ask", self._ask)
        (repo / ".rookery").mkdir()

    def _ask(self, question: str) -> str:
        self.questions.append(question)
        if isinstance(self.answer, str):
            return self.answer
        raise self.answer

    def gates(self, text: str) -> None:
        """Settings that a team has committed."""
        (self.repo / ".rookery" / "config.yaml").write_text(f"gates:\n{text}")

    def init(self, **more: bool) -> Initialised:
        ctx = Context(cwd=str(self.repo), environ=read_environ(dict(os.environ)), flags={})
        ctx.is_interactive = True
        return init(ctx, no_hooks=True, **more)

    def runs(self) -> list[tuple[str, str]]:
        """What the database of the new project knows of gates."""
        db = Database.open(str(self.repo / ".rookery" / "rookery.db"))
        rows = db.all("SELECT name, verdict FROM gate_runs ORDER BY seq")
        db.close()
        return [(name, verdict) for name, verdict in rows]


@pytest.fixture
def terminal(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(repo, monkeypatch)


def test_the_gates_are_tried_on_the_base(terminal: Terminal) -> None:
    terminal.gates("  - {name: good, run: 'true'}\n  - {name: bad, run: 'echo no deps; exit 3'}\nmerge: {retries: 0}\n")
    result = terminal.init()
    assert {check.name: (check.status, check.output) for check in result.checks} == {
        "gate good": ("ok", ""),
        "gate bad": ("warning", "no deps"),
    }
    assert terminal.runs() == [("good", "passed"), ("bad", "failed")]
    assert not list((terminal.repo / ".rookery" / "scratch").iterdir())
    assert terminal.init().checks == ()  # nothing was made, so nothing is asked
    assert len(terminal.questions) == 1


@pytest.mark.parametrize("answer", ["n", EOFError, KeyboardInterrupt])
def test_a_person_who_does_not_want_it_has_a_project(terminal: Terminal, answer: str | type[BaseException]) -> None:
    terminal.gates("  - {name: good, run: 'true'}\n")
    terminal.answer = answer
    result = terminal.init()
    assert result.checks == ()
    assert terminal.runs() == []
    assert any("rook doctor --gates" in step for step in (*result.notes, *result.next))


def test_nothing_is_asked_with_a_flag(terminal: Terminal) -> None:
    terminal.gates("  - {name: good, run: 'true'}\n")
    assert terminal.init(no_gates=True).checks == ()
    (terminal.repo / ".rookery" / "rookery.db").unlink()
    assert [check.status for check in terminal.init(yes=True).checks] == ["ok"]
    assert (terminal.questions, terminal.runs()) == ([], [("good", "passed")])


def test_a_script_that_says_nothing_runs_no_code_of_the_repository(repo: Path, terminal: Terminal) -> None:
    terminal.gates("  - {name: good, run: 'true'}\n")
    result = init(Context(cwd=str(repo), environ=read_environ(dict(os.environ)), flags={}))
    assert result.checks == ()
    assert terminal.runs() == []
    assert any("rook doctor --gates" in step for step in result.next)


def test_an_interrupt_while_a_gate_runs_keeps_the_project_and_ends_the_gate(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    terminal.gates(f"  - {{name: slow, run: 'echo $$ > {begun}; exec sleep 1000'}}\n")
    check = call.check_interrupted

    def interrupted() -> float:
        if begun.exists() and begun.read_text():
            monkeypatch.setattr(call, "check_interrupted", check)
            raise KeyboardInterrupt
        return check()

    monkeypatch.setattr(call, "check_interrupted", interrupted)
    result = terminal.init()
    assert any("rook doctor --gates" in note for note in result.notes)
    assert terminal.runs() == []
    wait_until(lambda: not Path(f"/proc/{begun.read_text().strip()}").exists())
    assert not list((terminal.repo / ".rookery" / "scratch").iterdir())


def test_a_setup_that_fails_does_not_fail_the_init(terminal: Terminal) -> None:
    terminal.gates("  - {name: good, run: 'true'}\nprovision: {setup: 'echo no network; exit 1'}\n")
    result = terminal.init()
    (check,) = result.checks
    assert (check.name, check.status) == ("gate good", "warning")
    assert check.output.endswith("no network")
    assert terminal.runs() == [("good", "failed")]


def test_gates_that_cannot_be_tried_do_not_fail_the_init(terminal: Terminal) -> None:
    terminal.gates("  - {name: good, run: 'true'}\nprovision: {copy: [missing.txt]}\n")
    (check,) = terminal.init().checks
    assert (check.status, "missing.txt" in check.message) == ("warning", True)
    assert terminal.runs() == []


def test_without_a_gate_it_says_how_to_add_one(terminal: Terminal) -> None:
    result = terminal.init(no_gates=True)
    assert result.gates == ()
    assert any("`gates:` in .rookery/config.yaml" in step for step in result.next)


def test_a_repository_without_a_commit_is_not_tried(terminal: Terminal, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    terminal.repo = empty
    (empty / ".rookery").mkdir()
    terminal.gates("  - {name: good, run: 'true'}\n")
    result = terminal.init()
    assert result.checks == ()
