"""A gate outlives its merger: the next merger takes its result, or the loop keeps it, and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from daemons import background_of
from process_tools import is_at_rest
from rookery.processes.inotify import CLOSED
from rookery.sessions import journal
from support import child_environ, rook_argv, wait_until

from .yard import Yard

pytestmark = pytest.mark.slow


class Gated:
    """A project whose gate waits for a word, and a branch that is to land."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self.yard = yard
        self.begun, self.go, self.runs = folder / "begun", folder / "go", folder / "runs"
        wait = f"until [ -e {self.go} ]; do sleep 0.02; done"
        yard.settings("", f"echo run >> {self.runs}; echo hello; echo $$ > {self.begun}; {wait}; cat {self.go}; exit")
        yard.branch("one", a_txt="a\n")
        yard.rook("merge", "enqueue", "one")

    def start(self) -> subprocess.Popen[bytes]:
        """A merger whose gate has begun."""
        merger = self.follow()
        wait_until(lambda: self.begun.exists() and self.begun.read_text().strip(), 60)
        return merger

    def follow(self) -> subprocess.Popen[bytes]:
        """A merger."""
        return subprocess.Popen(rook_argv("merge", "run"), cwd=self.yard.folder, env=child_environ(), stderr=-1)

    def killed(self) -> None:
        """A merger that is killed while its gate runs."""
        merger = self.start()
        merger.kill()
        merger.communicate()

    @property
    def job(self) -> str:
        """The gate's job."""
        (job,) = journal.jobs(str(self.yard.folder))
        return job

    def count(self) -> int:
        """How often the gate was run."""
        return len(self.runs.read_text().splitlines())

    def events(self) -> list[Any]:
        """The types of the events of gates."""
        db = self.yard.rook.open()
        rows = db.all("SELECT type FROM events WHERE type LIKE 'gate.%' ORDER BY seq")
        db.close()
        return [type_ for (type_,) in rows]

    def is_gone(self) -> bool:
        """True if no process of the gate is left."""
        return not os.path.exists(f"/proc/{self.begun.read_text().strip()}")

    def check(self) -> None:
        """The work has landed, the gate ran once and has one event of each type, and nothing is left."""
        assert self.yard.states() == {"one": "landed"}
        assert git(self.yard.folder, "show", "main:a.txt") == "a"
        assert (self.count(), self.events()) == (1, ["gate.passed"])
        self.yard.assert_tidy()
        assert not journal.jobs(str(self.yard.folder))


def waits(process: subprocess.Popen[bytes]) -> bool:
    """True once a process waits for a job: it watches for journals that are closed."""
    with suppress(FileNotFoundError):
        files = Path(f"/proc/{process.pid}/fdinfo").iterdir()
        return any(f" mask:{CLOSED:x} " in file.read_text() for file in files)
    return False


@pytest.fixture
def gated(yard: Yard, tmp_path: Path) -> Iterator[Gated]:
    gate = Gated(yard, tmp_path)
    yield gate
    gate.go.write_text("go")  # whatever still waits ends
    wait_until(lambda: not background_of(yard.folder, b"rookery.merge.gates.gate_runner"))


def test_the_next_merger_waits_for_a_gate_whose_merger_was_killed_and_takes_its_result(gated: Gated) -> None:
    gated.killed()
    assert not gated.is_gone()
    merger = gated.follow()
    wait_until(lambda: waits(merger), 60)
    gated.go.write_text("go")
    merger.communicate()
    assert merger.returncode == 0
    gated.check()


def test_without_another_merger_the_loop_keeps_the_result(gated: Gated) -> None:
    gated.killed()
    gated.go.write_text("go")
    wait_until(lambda: gated.events() == ["gate.passed"], 60)
    wait_until(lambda: not journal.jobs(str(gated.yard.folder)))
    wait_until(lambda: gated.yard.states() == {"one": "queued"})
    gated.yard.assert_tidy()
    assert gated.yard.merge("run").status == 0
    gated.check()


def test_the_loop_shows_a_gate_that_no_merger_waits_for(gated: Gated) -> None:
    gated.killed()
    shown = gated.yard.rook("loop", "explain").out.decode()
    assert "its merger has ended" in shown
    assert gated.yard.rook.json("loop", "explain").data["facts"]["jobs"][0]["label"] == "g1"


def test_a_gate_whose_runner_was_killed_too_is_run_again(gated: Gated) -> None:
    gated.killed()
    entry = journal.find(str(gated.yard.folder), gated.job, journal.RUNNER)
    assert entry is not None
    os.kill(entry["pid"], signal.SIGKILL)
    assert gated.yard.rook("loop", "run").status == 0
    wait_until(lambda: not journal.jobs(str(gated.yard.folder)))
    wait_until(gated.is_gone)
    gated.yard.assert_tidy()
    gated.go.write_text("go")
    assert gated.yard.merge("run").status == 0
    assert (gated.yard.states(), gated.count()) == ({"one": "landed"}, 2)


def test_a_gate_whose_runner_is_killed_under_its_merger_has_failed(gated: Gated) -> None:
    merger = gated.start()
    entry = journal.find(str(gated.yard.folder), gated.job, journal.RUNNER)
    assert entry is not None
    os.kill(entry["pid"], signal.SIGKILL)
    gated.go.write_text("go")  # for the second try
    merger.communicate()
    assert gated.yard.entry("one")["state"] in ("failed", "landed")
    assert gated.count() == 2
    gated.yard.assert_tidy()
    assert not journal.jobs(str(gated.yard.folder))


@pytest.mark.parametrize("is_adopted", [False, True])
def test_an_interrupted_merger_ends_its_gate(gated: Gated, is_adopted: bool) -> None:
    if is_adopted:
        gated.killed()
        merger = gated.follow()
        wait_until(lambda: waits(merger), 60)
    else:
        merger = gated.start()
    merger.send_signal(signal.SIGINT)
    merger.communicate()
    assert merger.returncode == 130
    wait_until(gated.is_gone)
    assert not journal.jobs(str(gated.yard.folder))
    wait_until(lambda: gated.yard.states() == {"one": "queued"})
    assert gated.events() == []
    gated.yard.assert_tidy()


def test_a_merger_that_needs_a_running_gate_takes_its_result(gated: Gated) -> None:
    merger = gated.start()
    words = rook_argv("gate", "run", "--branch", "one", "--json")
    asking = subprocess.Popen(words, cwd=gated.yard.folder, env=child_environ(), stdout=-1, stderr=-1)
    wait_until(lambda: waits(asking), 60)
    gated.go.write_text("go")
    out, _ = asking.communicate()
    merger.communicate()
    assert (asking.returncode, merger.returncode) == (0, 0), out
    gated.check()


@pytest.mark.parametrize("place", ["../../../precious", "..", "", "/precious", 7])
def test_a_journal_that_names_a_folder_elsewhere_deletes_nothing(yard: Yard, place: object) -> None:
    precious = yard.folder.parent / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    root = str(yard.folder)
    journal.make_folder(root)
    about = {"v": 1, "kind": "job", "place": place, "gate": "g", "tree": "t", "command": "c", "log": "l"}
    end = {"v": 1, "kind": "ended", "verdict": "passed", "status": 0, "seconds": 1, "last_lines": "", "at": "2026"}
    Path(journal.path_of(root, "gate-x")).write_text(f"{json.dumps(about)}\n{json.dumps(end)}\n")
    assert yard.rook("loop", "run").status == 0
    assert (precious / "file").read_text() == "kept"
    assert (yard.folder / "README.md").exists()
    assert journal.jobs(root) == []


def test_mergers_sleep_while_they_wait_for_a_gate_and_for_each_other(gated: Gated) -> None:
    gated.yard.branch("two", b_txt="b\n")
    first = gated.start()
    second = subprocess.Popen(rook_argv("merge", "--branch", "two"), cwd=gated.yard.folder, env=child_environ())
    wait_until(lambda: gated.yard.states().get("two") == "queued", 60)

    # A merger that is killed announces nothing, so a process that waits for one looks once a second.
    wait_until(lambda: is_at_rest([first.pid], 1) and is_at_rest([second.pid], 4), 60)
    assert (first.poll(), second.poll()) == (None, None)
    gated.go.write_text("go")
    first.communicate()
    assert (first.returncode, second.wait(60)) == (0, 0)
    assert gated.yard.states() == {"one": "landed", "two": "landed"}
