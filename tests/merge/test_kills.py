"""Killed at any step, or with two at once, the queue goes on: nothing lands twice or half, and no file is harmed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import git
from rookery.base.errors import RookError
from rookery.merge import lease, store
from rookery.merge.landing import land
from rookery.merge.landing.candidate import Candidate, build
from rookery.merge.lease import Lease
from rookery.merge.lease_store import LeaseRow
from rookery.processes.proctree import identify
from support import INTERRUPTS, child_environ, rook_argv, run_interrupted, wait_until

from .yard import Yard, unfenced

pytestmark = pytest.mark.slow

STEPS = (
    "taken",
    "gate started",
    "gate remembered",
    "gated",
    "landing recorded",
    "checkouts forwarded",
    "lease checked",
    "base moved",
    "landing written",
    "indexes follow",
)


def prepare(yard: Yard) -> tuple[str, str]:
    yard.settings("", "true")
    yard.commit(a_txt="a\n", mine_txt="m\n")
    one = yard.branch("one", a_txt="A\n", new_txt="n\n")
    two = yard.branch("two", b_txt="b\n")
    (yard.folder / "mine.txt").write_text("changed\n")
    (yard.folder / "loose.txt").write_text("loose\n")
    yard.rook("merge", "enqueue", "one", "two")
    return one, two


def check_all_landed_once(yard: Yard) -> None:
    assert yard.states() == {"one": "landed", "two": "landed"}
    assert git(yard.folder, "log", "--merges", "--format=%s", "main").count("Merge:") == 2
    events = yard.rook.json("events", "--type", "merge.landed").out.decode().splitlines()
    assert len(events) == 2
    assert (yard.show("a.txt"), yard.show("b.txt"), yard.show("new.txt")) == ("A", "b", "n")
    assert (yard.folder / "a.txt").read_text() == "A\n"
    assert (yard.folder / "mine.txt").read_text() == "changed\n"
    assert (yard.folder / "loose.txt").read_text() == "loose\n"
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["M mine.txt", "?? loose.txt"]
    yard.assert_tidy()


@pytest.mark.sweep
@pytest.mark.parametrize("step", STEPS)
def test_the_next_merger_finishes_the_work_of_a_killed_one(yard: Yard, step: str) -> None:
    prepare(yard)
    yard.killed(step, "merge", "run")
    yard.wait_for_loop()  # a daemon that is at it has the lease
    assert yard.merge("run").status == 0
    check_all_landed_once(yard)


@pytest.mark.sweep
@pytest.mark.parametrize("step", STEPS)
def test_any_command_settles_what_a_killed_merger_left(yard: Yard, step: str) -> None:
    prepare(yard)
    before = yard.main()
    yard.killed(step, "merge", "run")
    assert yard.rook("loop", "run").status == 0
    yard.wait_for_loop()
    has_moved = step in ("base moved", "landing written", "indexes follow")
    assert yard.states() == dict.fromkeys(("one", "two"), "landed" if has_moved else "queued")
    assert (yard.main() != before) is has_moved
    assert (yard.folder / "a.txt").read_text() == ("A\n" if has_moved else "a\n")
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["M mine.txt", "?? loose.txt"]
    assert not list((yard.folder / ".git").glob("*.lock"))
    assert yard.merge("run").envelope["ok"]
    check_all_landed_once(yard)


@pytest.mark.parametrize("how", INTERRUPTS)
@pytest.mark.parametrize("step", STEPS)
def test_an_interrupted_merger_leaves_nothing_half_done(yard: Yard, step: str, how: str) -> None:
    prepare(yard)
    run_interrupted(yard.folder, how, step, "merge", "run")
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["M mine.txt", "?? loose.txt"]
    assert not list((yard.folder / ".git").glob("*.lock"))
    yard.wait_for_loop()
    assert yard.merge("run").envelope["ok"]
    check_all_landed_once(yard)


@pytest.mark.parametrize("how", INTERRUPTS)
@pytest.mark.parametrize("step", ["undo recorded", "undo checked", "undo moved", "undo written"])
def test_an_interrupted_undo_is_finished_or_forgotten(yard: Yard, step: str, how: str) -> None:
    yard.branch("one", a_txt="a\n")
    before = yard.main()
    yard.merge("--branch", "one")
    run_interrupted(yard.folder, how, step, "merge", "undo", "one")
    assert yard.rook("loop", "run").status == 0
    yard.wait_for_loop()
    if yard.states() == {"one": "landed"}:
        assert yard.merge("undo", "one").status == 0
    assert yard.states() == {"one": "undone"}
    assert yard.main() == before
    assert not (yard.folder / "a.txt").exists()
    yard.assert_tidy()


@pytest.mark.parametrize("step", ["landing recorded", "base moved"])
def test_the_process_that_recovers_is_killed_too(yard: Yard, step: str) -> None:
    prepare(yard)
    yard.killed_alone(step, "merge", "run")
    yard.killed_in_recovery("recovered one")
    yard.wait_for_loop()
    assert yard.merge("run").envelope["ok"]
    check_all_landed_once(yard)


@pytest.mark.parametrize("step", ["lease taken", "lease fenced"])
@pytest.mark.parametrize("earlier", ["checkouts forwarded", "base moved"])
def test_the_one_who_takes_the_lease_over_is_killed_too(yard: Yard, earlier: str, step: str) -> None:
    prepare(yard)
    yard.killed_alone(earlier, "merge", "run")
    yard.killed_in_recovery(step)
    yard.wait_for_loop()  # a daemon that is at it has the lease
    assert yard.merge("run").envelope["ok"]
    check_all_landed_once(yard)


@pytest.mark.parametrize("step", ["undo recorded", "undo checked", "undo moved", "undo written"])
def test_an_undo_that_is_killed_is_finished_or_forgotten(yard: Yard, step: str) -> None:
    yard.branch("one", a_txt="a\n")
    before = yard.main()
    yard.merge("--branch", "one")
    yard.killed(step, "merge", "undo", "one")
    assert yard.rook("loop", "run").status == 0
    yard.wait_for_loop()
    is_done = step not in ("undo recorded", "undo checked")
    assert yard.states() == {"one": "undone" if is_done else "landed"}
    assert (yard.main() == before) is is_done
    if not is_done:
        assert yard.merge("undo", "one").status == 0
    assert git(yard.folder, "status", "--porcelain") == ""
    assert not (yard.folder / "a.txt").exists()
    yard.assert_tidy()


def test_two_mergers_at_once_land_everything_once(yard: Yard, tmp_path: Path) -> None:
    yard.settings("", "sleep 0.2")
    names = [f"b{number}" for number in range(6)]
    for name in names:
        yard.branch(name, **{f"{name}_txt": name})
    words = [("merge", "--branch", name, "--json") for name in names]
    children = [
        subprocess.Popen(
            rook_argv(*call), cwd=yard.folder, env=child_environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for call in words
    ]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, (out, err)
    assert set(yard.states().values()) == {"landed"}
    assert git(yard.folder, "log", "--merges", "--format=%s", "main").count("Merge:") == 6
    assert all(yard.contains(name) for name in names)
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


def test_a_second_merger_without_a_wish_of_its_own_is_turned_away(yard: Yard, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    yard.settings("", f"touch {begun}; while ! test -e {go}; do sleep 0.05; done")
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    child = subprocess.Popen(
        rook_argv("merge", "run", "--json"), cwd=yard.folder, env=child_environ(), stdout=subprocess.PIPE
    )
    wait_until(begun.exists, 60)
    assert yard.merge("run").error["code"] == "merge_busy"
    assert yard.merge("undo", "one").error["code"] == "invalid_state"
    yard.settings("merge:\n  wait: 0.2s\n", f"touch {begun}; while ! test -e {go}; do sleep 0.05; done")
    yard.branch("two", b_txt="b\n")
    assert yard.merge("--branch", "two").error["code"] == "merge_busy"
    # The merger at work lands what was queued meanwhile.
    go.touch()
    child.communicate(timeout=60)
    assert yard.states() == {"one": "landed", "two": "landed"}


def test_a_merger_that_lost_the_lease_cannot_move_the_base(yard: Yard) -> None:
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    merger = yard.merger()
    mine = lease.acquire(merger, "main")
    assert isinstance(mine, Lease)
    entry = store.change(merger.ctx.db, store.queue(merger.ctx.db)[0], "take", actor="human", at=merger.ctx.now())
    built = build(merger, entry, yard.main())
    assert isinstance(built, Candidate)
    before = yard.main()
    # It does not renew its lease for so long that another takes over.
    merger.ctx.db.execute("UPDATE merge_leases SET expires_at = '2000-01-01T00:00:00.000Z'")
    other = lease.acquire(merger, "main")
    assert isinstance(other, Lease)
    assert other.token == mine.token + 1
    with pytest.raises(RookError) as caught:
        land.land(merger, mine, [built])
    assert caught.value.code == "lost_lease"
    with pytest.raises(RookError):
        lease.renew(merger, mine)
    assert yard.main() == before
    lease.release(merger, mine)  # changes nothing
    lease.check(merger.ctx.db, other)
    assert not (yard.folder / "a.txt").exists()
    merger.ctx.db.close()


def test_the_lease_is_lost_while_the_files_are_forwarded(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.branch("one", README_md="new\n")
    yard.rook("merge", "enqueue", "one")
    merger = yard.merger()
    mine = lease.acquire(merger, "main")
    assert isinstance(mine, Lease)
    entry = store.change(merger.ctx.db, store.queue(merger.ctx.db)[0], "take", actor="human", at=merger.ctx.now())
    built = build(merger, entry, yard.main())
    assert isinstance(built, Candidate)

    def take_over(step: str) -> None:
        if step == "checkouts forwarded":
            merger.ctx.db.execute("UPDATE merge_leases SET token = token + 1")

    monkeypatch.setattr("rookery.config.steps.reached", take_over)
    with pytest.raises(RookError) as caught:
        land.land(merger, mine, [built])
    assert caught.value.code == "lost_lease"
    assert (yard.folder / "README.md").read_text() == "hello\n"
    assert git(yard.folder, "status", "--porcelain") == ""
    merger.ctx.db.close()


def test_a_dead_holder_is_replaced_at_once_and_a_living_one_is_not(yard: Yard) -> None:
    merger = yard.merger()
    holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    process = identify(holder.pid)
    assert process is not None
    merger.ctx.db.execute(
        "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES (?, 7, 'bee', ?, ?, ?)",
        ("main", process.pid, process.start, "2999-01-01T00:00:00.000Z"),
    )
    held = lease.acquire(merger, "main")
    assert isinstance(held, LeaseRow)
    assert (held.actor, held.process.pid) == ("bee", holder.pid)
    holder.kill()
    holder.wait()
    assert unfenced(lease.acquire(merger, "main")) == Lease("main", 8, is_inherited=True)
    merger.ctx.db.close()


def test_a_base_that_another_process_moves_meanwhile_is_built_on(yard: Yard, tmp_path: Path) -> None:
    """A person commits to main while the gates run: the candidate is made again on top of that."""
    once = tmp_path / "once"
    command = (
        f"test -e {once} || {{ touch {once}; cd {yard.folder}; echo theirs > theirs.txt; git add theirs.txt; "
        "git commit -qm Theirs; }"
    )
    yard.settings("sandbox:\n  mode: 'off'\n", command)
    yard.branch("one", a_txt="a\n")
    data = yard.merge("--branch", "one").data
    assert data["entries"][0]["state"] == "landed"
    assert data["gate_runs"] == 2
    assert (yard.show("a.txt"), yard.show("theirs.txt")) == ("a", "theirs")
    assert git(yard.folder, "log", "-1", "--format=%s", "main^1") == "Theirs"


def test_a_commit_in_the_checkout_while_a_landing_is_under_way_is_not_lost(yard: Yard) -> None:
    yard.branch("one", a_txt="a\n")
    (yard.folder / "mine.txt").write_text("mine\n")
    git(yard.folder, "add", "mine.txt")
    git(yard.folder, "commit", "-qm", "Mine")
    assert yard.merge("--branch", "one").status == 0
    assert git(yard.folder, "log", "--format=%s", "main").count("Mine") == 1


def test_a_hook_that_refuses_the_base_lets_it_wait(yard: Yard) -> None:
    yard.branch("one", README_md="new\n")
    hook = yard.folder / ".git" / "hooks" / "reference-transaction"
    hook.write_text('#!/bin/sh\n[ "$1" = prepared ] || exit 0\n! grep -q refs/heads/main || { echo no >&2; exit 1; }\n')
    hook.chmod(0o755)
    assert yard.merge("--branch", "one").status == 1
    entry = yard.entry("one")
    assert (entry["state"], "no" in entry["reason"]) == ("waiting", True)
    assert (yard.folder / "README.md").read_text() == "hello\n"
    assert git(yard.folder, "status", "--porcelain") == ""
    hook.unlink()
    assert yard.merge("run").status == 0


def test_an_interrupt_puts_everything_back_at_once(yard: Yard, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    yard.settings("", f"touch {begun}; sleep 1000")
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    child = subprocess.Popen(rook_argv("merge", "run"), cwd=yard.folder, env=child_environ(), stderr=subprocess.DEVNULL)
    wait_until(begun.exists, 60)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    db = yard.rook.open()
    assert db.value("SELECT state FROM merges") == "queued"
    assert db.value("SELECT holder FROM merge_leases") is None
    db.close()
    yard.assert_tidy()
