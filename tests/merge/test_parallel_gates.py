"""Gates of several candidates at once: who waits for whom, what lands, what is left after a kill, and the bounds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemons import background_of
from rookery.merge import queue as merging
from rookery.merge.gates import slots
from rookery.processes import locks
from rookery.sessions import journal
from support import child_environ, rook_argv, wait_until

from .yard import Yard

pytestmark = pytest.mark.slow


def queue(yard: Yard, *names: str, content: str = "good\n") -> None:
    """Queue branches, each with a file of its own."""
    for name in names:
        yard.branch(name, **{f"{name}_txt": "broken\n" if name.startswith("bad") else content})
    assert yard.rook("merge", "enqueue", *names).status == 0


def together(folder: Path, others: int) -> str:
    """A gate that passes only while so many others run at the same time."""
    return (
        f"touch {folder}/$$; i=0; "
        f"until [ $(ls {folder} | wc -l) -gt {others} ]; do sleep 0.05; i=$((i+1)); [ $i -lt 400 ] || exit 1; done"
    )


def runs(yard: Yard) -> list[tuple[str, str]]:
    """The rows of gate runs: tree and verdict."""
    db = yard.rook.open()
    rows = db.all("SELECT tree, verdict FROM gate_runs ORDER BY seq")
    db.close()
    return [(tree, verdict) for tree, verdict in rows]


def test_gates_of_stacked_batches_run_at_the_same_time(yard: Yard, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    yard.settings("merge:\n  slots: 2\n  batch: 1\n  retries: 0\n", together(place, 1))
    queue(yard, "one", "two")
    ran = yard.merge("run")
    assert ran.status == 0, ran
    assert yard.states() == {"one": "landed", "two": "landed"}
    assert (yard.show("one.txt"), yard.show("two.txt")) == ("good", "good")
    assert [verdict for _, verdict in runs(yard)] == ["passed", "passed"]
    assert len({tree for tree, _ in runs(yard)}) == 2
    yard.assert_tidy()


def test_with_one_slot_they_run_one_after_the_other(yard: Yard, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    yard.settings("merge:\n  slots: 1\n  batch: 1\n  retries: 0\n", f"mkdir {busy} || exit 1; sleep 0.1; rmdir {busy}")
    queue(yard, "one", "two", "three")
    assert yard.merge("run").data["gate_runs"] == 3
    assert set(yard.states().values()) == {"landed"}


def test_all_processes_share_the_slots(yard: Yard, tmp_path: Path) -> None:
    """A merger and two `rook gate run` at once: never more than two gates."""
    busy, most = tmp_path / "busy", tmp_path / "most"
    busy.mkdir()
    gate = f"touch {busy}/$$; ls {busy} | wc -l >> {most}; sleep 0.3; rm {busy}/$$"
    yard.settings("merge:\n  slots: 2\n  batch: 1\n", gate)
    queue(yard, "one", "two", "three", "four")
    yard.branch("five", e_txt="e\n")
    yard.branch("six", f_txt="f\n")
    words = [("merge", "run"), ("gate", "run", "--branch", "five"), ("gate", "run", "--branch", "six")]
    processes = [subprocess.Popen(rook_argv(*word), cwd=yard.folder, env=child_environ(), stdout=-1) for word in words]
    assert [process.communicate() and process.returncode for process in processes] == [0, 0, 0]
    counts = [int(line) for line in most.read_text().split()]
    assert len(counts) == 6
    assert max(counts) == 2
    yard.assert_tidy()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_whatever_the_slots_the_same_branches_land(yard: Yard, count: int) -> None:
    yard.settings(f"merge:\n  slots: {count}\n  retries: 0\n", "! grep -l broken *.txt")
    names = ["a", "bad1", "c", "d", "e", "bad2", "g", "h", "i"]
    queue(yard, *names)
    assert yard.merge("run").status == 1
    assert yard.states() == {name: "failed" if name.startswith("bad") else "landed" for name in names}
    for name in names:
        assert yard.contains(name) is not name.startswith("bad")
    assert yard.entry("bad1")["kind"] == "gate"
    # The base itself has passed, not only what it was made of.
    tree = subprocess.run(
        ["git", "rev-parse", "main^{tree}"], cwd=yard.folder, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert (tree, "passed") in runs(yard)
    yard.assert_tidy()


def test_the_number_of_slots_follows_from_the_machine_by_default(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.settings("merge:\n  slots: 0\n")
    merger = yard.merger()
    for processors, expected in {1: 1, 2: 1, 4: 2, 6: 3, 8: 4, 64: 4}.items():
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, count=processors: set(range(count)))
        assert slots.count(merger.ctx) == expected
    merger.ctx.db.close()


class Held:
    """Two gates of one merger that wait for a word."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self.yard = yard
        self.go, self.begun = folder / "go", folder / "begun"
        self.begun.mkdir()
        wait = f"until [ -e {self.go} ]; do sleep 0.02; done"
        yard.settings("merge:\n  slots: 2\n  batch: 1\n", f"touch {self.begun}/$$; {wait}; exit 0")
        queue(yard, "one", "two")

    def start(self) -> subprocess.Popen[bytes]:
        merger = subprocess.Popen(rook_argv("merge", "run"), cwd=self.yard.folder, env=child_environ(), stderr=-1)
        wait_until(lambda: len(list(self.begun.iterdir())) == 2, 60)
        return merger

    def is_gone(self) -> bool:
        return not any(os.path.exists(f"/proc/{path.name}") for path in self.begun.iterdir())

    def assert_no_slot_is_held(self) -> None:
        folder = self.yard.folder / ".rookery" / "run" / "slots"
        assert not [path.name for path in folder.iterdir() if locks.is_locked(str(path))]


@pytest.fixture
def held(yard: Yard, tmp_path: Path) -> Iterator[Held]:
    gates = Held(yard, tmp_path)
    yield gates
    gates.go.write_text("go")
    wait_until(lambda: not background_of(yard.folder, b"rookery.merge.gates.gate_runner"))


def test_the_next_merger_takes_both_results_of_one_that_was_killed(held: Held) -> None:
    merger = held.start()
    merger.kill()
    merger.communicate()
    assert len(journal.jobs(str(held.yard.folder))) == 2
    held.go.write_text("go")
    assert held.yard.merge("run").status == 0
    assert held.yard.states() == {"one": "landed", "two": "landed"}
    assert len(list(held.begun.iterdir())) == 2  # neither gate was run again
    assert [verdict for _, verdict in runs(held.yard)] == ["passed", "passed"]
    held.yard.wait_for_loop()
    assert not journal.jobs(str(held.yard.folder))
    held.yard.assert_tidy()
    held.assert_no_slot_is_held()


def test_an_interrupt_ends_all_gates_of_a_merger(held: Held) -> None:
    merger = held.start()
    merger.send_signal(signal.SIGINT)
    merger.communicate()
    assert merger.returncode == 130
    wait_until(held.is_gone)
    assert not journal.jobs(str(held.yard.folder))
    wait_until(lambda: held.yard.states() == {"one": "queued", "two": "queued"})
    assert runs(held.yard) == []
    held.yard.assert_tidy()
    held.assert_no_slot_is_held()


@pytest.mark.parametrize("step", ["gate started", "gate started:2", "gate remembered", "gated", "gated:2"])
def test_a_merger_killed_at_a_step_leaves_nothing_behind(yard: Yard, step: str) -> None:
    yard.settings("merge:\n  slots: 2\n  batch: 1\n", "! grep -l broken *.txt")
    queue(yard, "one", "bad", "three")
    yard.killed(step, "merge", "run")
    yard.wait_for_loop()
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "bad": "failed", "three": "landed"}
    yard.wait_for_loop()
    assert not journal.jobs(str(yard.folder))
    yard.assert_tidy()


def test_a_gate_that_uses_too_much_memory_is_ended_and_says_which_setting(yard: Yard) -> None:
    hog = "python3 -c 'import time; data = bytearray(150_000_000); time.sleep(60)'"
    # Each process alone is within the bound; all of them together are not.
    yard.settings("merge:\n  memory: 350\n", f"{hog} & {hog} & {hog} & wait")
    yard.branch("work", a_txt="a\n")
    status, envelope = (ran := yard.rook.json("gate", "run", "--branch", "work")).status, ran.envelope
    (result,) = envelope["data"]["runs"]
    assert (status, result["verdict"]) == (1, "memory")
    assert "more than 350 MB of memory (merge.memory)" in Path(result["log"]).read_text()
    assert "merge.memory" in result["last_lines"]
    assert yard.merge("--branch", "work").status == 1
    assert "used too much memory" in yard.entry("work")["reason"]
    yard.settings("merge:\n  memory: 2000\n", hog.replace("sleep(60)", "sleep(1)"))
    assert yard.merge("--branch", "work").status == 0
    yard.assert_tidy()


def test_a_gate_runs_on_as_many_processors_as_it_may(yard: Yard) -> None:
    yard.settings("", "nproc")
    (result,) = yard.rook.json("gate", "run").data["runs"]
    if int(Path(result["log"]).read_text()) < 2:
        pytest.skip("this machine has one processor")
    yard.settings("merge:\n  cpus: 1\n", "nproc; echo")
    (result,) = yard.rook.json("gate", "run").data["runs"]
    assert Path(result["log"]).read_text().split() == ["1"]


def test_lines_of_gates_that_run_at_once_name_their_branch(yard: Yard) -> None:
    yard.settings("merge:\n  slots: 2\n  batch: 1\n", "printf 'first\\nlast'")
    queue(yard, "one", "two")
    merger = yard.merger()
    shown: list[str] = []
    merger.say = shown.append
    merging.work(merger, "main")
    merger.ctx.db.close()
    lines = "".join(shown).splitlines()
    for line in ("[one g1] first", "[one g1] last", "[two+1 g1] first", "[two+1 g1] last"):
        assert line in lines
