"""No process here takes one on another host or in another container for dead, or signals it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from den import Den
from rookery.processes import holder, proctable
from rookery.processes.holder import HolderId
from rookery.processes.proctree import Identity, identify, marked
from rookery.vcs.git.index_claim import Claim

NOBODY = 4_000_000
"""A number that no process has."""


def _on_another_host(pid: int) -> HolderId:
    return HolderId(Identity(pid, "0a1b2c3d-1"), "another", "4026531836")


def _in_another_container(pid: int) -> HolderId:
    process = identify(pid)
    start = holder.myself().identity.start if process is None else process.start
    return HolderId(Identity(pid, start), holder.host(), "1")


FORGED = pytest.mark.parametrize("forge", [_on_another_host, _in_another_container])


@pytest.fixture
def den(repo: Path) -> Den:
    project = Den(repo)
    project.sling(project.task("Wait", [{"wait": "mail"}]), "--name", "ann")
    project.wait_for("ann", "waiting")
    return project


@pytest.fixture
def innocent() -> Iterator[int]:
    """A process of this place that has the number of the holder elsewhere."""
    child = subprocess.Popen(["sleep", "1000"])
    yield child.pid
    assert child.poll() is None
    child.kill()
    child.wait()


def _give(den: Den, runner: HolderId, **changes: object) -> None:
    """Let a process on another host or in another namespace be ann's runner."""
    row = {"runner_pid": runner.pid, "runner_start": runner.text} | changes
    db = den.rook.open()
    db.execute(f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in row)}", tuple(row.values()))
    db.close()


def _look_everywhere(den: Den) -> None:
    """Run every command that looks for what killed processes left behind."""
    for words in (("status",), ("doctor", "--fix"), ("merge", "--all"), ("worktree", "clean"), ("status",)):
        ran = den.rook(*words)
        assert ran.status == 0 or words[0] == "merge", ran


def _turns(den: Den) -> list[tuple[object, ...]]:
    db = den.rook.open()
    rows = db.all("SELECT number, state, pid, pid_start FROM turns ORDER BY number")
    db.close()
    return rows


@FORGED
@pytest.mark.slow
@pytest.mark.parametrize("state", ["working", "booting"])
def test_an_agent_that_is_driven_elsewhere_is_left_alone(den: Den, forge: object, state: str, innocent: int) -> None:
    before = _turns(den)
    for pid in (NOBODY, innocent):
        _give(den, forge(pid), state=state, step="ready" if state == "working" else "provisioned")  # type: ignore[operator]
        assert den.rook("mail", "send", "ann", "--subject", "Go").status == 0
        _look_everywhere(den)
        assert den.agent("ann")["state"] == state
        assert _turns(den) == before
        assert not marked("ROOKERY_SESSION", den.agent("ann")["session_id"])
        assert (den.folder / ".rookery" / "worktrees" / "ann").is_dir()


@FORGED
@pytest.mark.slow
def test_a_person_who_stops_it_signals_nothing_here(den: Den, forge: object, innocent: int) -> None:
    _give(den, forge(innocent), state="working")  # type: ignore[operator]
    assert den.rook("interrupt", "ann").status != 0
    assert den.rook("stop", "ann").status == 0
    assert den.agent("ann")["outcome"] == "stopped"


@FORGED
@pytest.mark.slow
def test_a_stop_that_is_done_elsewhere_ends_by_its_lease(den: Den, forge: object, clock: object) -> None:
    stopper: HolderId = forge(NOBODY)  # type: ignore[operator]
    _give(den, stopper, runner_pid=None, runner_start=None, reason=f"stopping {stopper.pid} {stopper.text}")
    _look_everywhere(den)
    assert den.agent("ann")["state"] == "waiting"
    clock.advance(minutes=11)  # type: ignore[attr-defined]
    den.rook("loop", "run")
    assert den.agent("ann")["outcome"] == "stopped"


@FORGED
@pytest.mark.slow
def test_a_lease_a_scratch_folder_and_a_claim_end_by_time_alone(den: Den, forge: object, clock: object) -> None:
    holder: HolderId = forge(NOBODY)  # type: ignore[operator]
    db = den.rook.open()
    row = (holder.pid, holder.text, "2999-01-01T00:00:00.000Z")
    db.execute("INSERT INTO merge_leases VALUES ('main', 7, 'human', ?, ?, ?)", row)
    scratch = den.folder / ".rookery" / "scratch" / "held"
    scratch.parent.mkdir(exist_ok=True)
    scratch.with_name("held.owner").symlink_to(f"{holder.pid} {holder.text}")
    scratch.mkdir()
    claim = Claim(str(den.folder), str(den.folder / ".git"))
    claim.take("a" * 40, "b" * 40)
    owner = den.folder / ".git" / "rookery-forward.owner"
    owner.unlink()
    owner.symlink_to(f"{holder.pid} {holder.text}")
    _look_everywhere(den)
    assert db.all("SELECT token, pid FROM merge_leases") == [(7, holder.pid)]
    assert scratch.is_dir()
    assert claim.is_owned()
    os.utime(owner, (1, 1), follow_symlinks=False)
    assert not claim.is_owned()
    claim.drop()
    clock.advance(hours=25)  # type: ignore[attr-defined]
    db.execute("UPDATE merge_leases SET expires_at = '2000-01-01T00:00:00.000Z'")
    _look_everywhere(den)
    assert not scratch.exists()
    assert db.value("SELECT pid FROM merge_leases WHERE pid = ?", (holder.pid,)) is None
    db.close()


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value"), [("host", "another"), ("namespace", "1")])
def test_a_terminal_of_another_place_is_not_taken_for_gone(den: Den, column: str, value: str) -> None:
    """Only processes on the project's own host and namespace can see its terminals."""
    db = den.rook.open()
    gone = holder.of(Identity(NOBODY, f"{proctable.this_boot()}-1"))
    there = gone.replace(**{column: value}, identity=Identity(NOBODY, "0a1b2c3d-123"))
    db.execute("UPDATE sessions SET mode = 'tmux', state = 'working'")
    for runner, outcome in ((there, None), (gone, "crashed")):
        if column == "namespace" and outcome is None:
            runner = runner.replace(identity=gone.identity)
        db.execute("UPDATE sessions SET runner_pid = ?, runner_start = ?", (runner.pid, runner.text))
        _look_everywhere(den)
        assert den.agent("ann")["outcome"] == outcome
    db.close()


@pytest.mark.slow
def test_the_child_of_a_turn_is_kept_with_its_host_and_namespace(den: Den) -> None:
    [(_, _, pid, start)] = _turns(den)
    me = holder.myself()
    owner = holder.read(int(str(pid)), str(start))
    assert (owner.host, owner.namespace, owner.call) == (me.host, me.namespace, "")
