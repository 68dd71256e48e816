"""The fence of a landing is kept in git: a merger that was replaced cannot move the base, wherever it hung."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import Clock, git
from rookery.merge import lease
from rookery.merge.landing import cleanup
from rookery.merge.lease import Lease
from rookery.vcs.git.moves import Fenced, read_fence, write_fence
from rookery.vcs.ref_names import fence_ref
from support import child_environ, rook_argv, wait_until

from .yard import Yard

pytestmark = pytest.mark.slow

NAMES = ("a/b", "release-1.0", "größe", "a@b", 'quo"te', "x%2Fy", "x" * 120 + "/" + "y" * 120)


def take_over(yard: Yard, base: str = "main") -> str:
    """Take over the lease of a base from a process that is gone, and release it; return the fence."""
    merger = yard.merger()
    merger.ctx.db.execute(
        "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES (?, 1, 'bee', 1, 'x', ?) "
        "ON CONFLICT (base) DO UPDATE SET holder = 'bee', pid = 1, pid_start = 'x', expires_at = excluded.expires_at",
        (base, "2000-01-01T00:00:00.000Z"),
    )
    taken = lease.acquire(merger, base)
    assert isinstance(taken, Lease)
    lease.release(merger, taken)
    merger.ctx.db.close()
    return taken.fence


class Stopped:
    """`rook` in a process that stops at a step, until it is continued."""

    def __init__(self, yard: Yard, step: str, *words: str) -> None:
        self._child = subprocess.Popen(
            rook_argv(*words, "--json"),
            cwd=yard.folder,
            env=child_environ({"ROOKERY_TEST_STOP": step}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: self._child.poll() is not None or self._state() == "T", 60)
        assert self._child.poll() is None, self._child.communicate()

    def _state(self) -> str:
        return Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def go_on(self) -> tuple[int, bytes]:
        """Let it continue to its end: its status, and what it prints."""
        self._child.send_signal(signal.SIGCONT)
        out, _ = self._child.communicate(timeout=60)
        return self._child.returncode, out


def expire(yard: Yard) -> None:
    db = yard.rook.open()
    db.execute("UPDATE merge_leases SET expires_at = '2000-01-01T00:00:00.000Z'")
    db.close()


def rows(yard: Yard) -> list[tuple[object, ...]]:
    db = yard.rook.open()
    result = db.all("SELECT branch, state, landed_at FROM merges ORDER BY branch")
    result += db.all("SELECT type, subject FROM events WHERE type = 'merge.landed' OR type = 'merge.undone'")
    db.close()
    return result


@pytest.mark.parametrize("step", ["landing recorded", "checkouts forwarded", "lease checked"])
def test_a_merger_that_hung_and_was_replaced_moves_nothing_and_writes_no_row(yard: Yard, step: str) -> None:
    yard.branch("one", one_txt="1\n")
    yard.branch("two", two_txt="2\n")
    git(yard.folder, "switch", "-q", "--detach")
    stopped = Stopped(yard, step, "merge", "--branch", "one")
    expire(yard)
    assert yard.merge("--branch", "two").status == 0
    base, before = yard.main(), rows(yard)
    status, out = stopped.go_on()
    assert (status, b"lost_lease" in out) == (1, True)
    assert yard.main() == base
    assert git(yard.folder, "ls-tree", "--name-only", "main").split() == ["README.md", "two.txt"]
    assert rows(yard) == before
    entry = yard.entry("one")
    assert (entry["state"], entry["landed_at"]) == ("queued", None)
    assert git(yard.folder, "for-each-ref", f"refs/rookery/merge/{entry['id']}") == ""
    assert yard.merge("run").status == 0
    assert yard.show("one.txt") == "1"


def test_git_alone_refuses_a_merger_that_was_replaced_before_the_base_moved(yard: Yard) -> None:
    """The base is where it was, and so only the fence says that another one is at it."""
    yard.branch("one", one_txt="1\n")
    git(yard.folder, "switch", "-q", "--detach")
    before = yard.main()
    stopped = Stopped(yard, "lease checked", "merge", "--branch", "one")
    take_over(yard)
    assert stopped.go_on()[0] == 1
    assert yard.main() == before
    assert git(yard.folder, "for-each-ref", "refs/rookery/merge/") == ""


def test_an_undo_that_hung_and_was_replaced_moves_nothing(yard: Yard) -> None:
    yard.branch("one", one_txt="1\n")
    assert yard.merge("--branch", "one").status == 0
    git(yard.folder, "switch", "-q", "--detach")
    base = yard.main()
    stopped = Stopped(yard, "undo checked", "merge", "undo", "one")
    take_over(yard)
    status, out = stopped.go_on()
    assert (status, b"lost_lease" in out) == (1, True)
    assert yard.main() == base
    assert yard.states() == {"one": "landed"}
    assert yard.merge("undo", "one").status == 0
    assert yard.states() == {"one": "undone"}


def test_a_checkout_that_a_hung_merger_is_changing_is_left_to_it(yard: Yard) -> None:
    yard.branch("one", one_txt="1\n")
    yard.branch("two", two_txt="2\n")
    stopped = Stopped(yard, "lease checked", "merge", "--branch", "one")
    expire(yard)
    assert yard.merge("--branch", "two").status == 1  # it waits: the checkout is half changed
    before = yard.main()
    assert stopped.go_on()[0] == 1
    assert yard.main() == before
    assert git(yard.folder, "status", "--porcelain") == ""
    assert not (yard.folder / "one.txt").exists()
    assert yard.merge("run").status == 0
    assert yard.states() == {"one": "landed", "two": "landed"}
    assert (yard.show("one.txt"), yard.show("two.txt")) == ("1", "2")
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


@pytest.mark.parametrize("base", NAMES)
def test_a_base_of_any_name_has_a_fence(yard: Yard, base: str) -> None:
    yard.branch("one", one_txt="1\n")
    git(yard.folder, "branch", base, "main")
    fence = take_over(yard, base)
    assert fence
    assert git(yard.folder, "rev-parse", fence_ref(base)) == fence
    assert yard.merge("--branch", "one", "--into", base).status == 0
    assert yard.show("one.txt", base) == "1"
    merger = yard.merger()
    with pytest.raises(Fenced):
        merger.merging.move(base, yard.main(), git(yard.folder, "rev-parse", f"refs/heads/{base}"), "x", fence="")
    merger.ctx.db.close()


def test_fences_of_nested_names_do_not_collide(yard: Yard) -> None:
    yard.branch("one", one_txt="1\n")
    git(yard.folder, "branch", "work", "main")
    assert take_over(yard, "work")
    git(yard.folder, "branch", "-D", "work")
    git(yard.folder, "branch", "work/more", "main")
    assert take_over(yard, "work/more")
    assert yard.merge("--branch", "one", "--into", "work/more").status == 0
    assert yard.show("one.txt", "work/more") == "1"


@pytest.mark.parametrize("how", [("pack-refs", "--all", "--prune"), ("gc", "--quiet", "--prune=now")])
def test_a_fence_outlives_what_git_does_to_refs_and_objects(yard: Yard, how: tuple[str, ...]) -> None:
    yard.branch("one", one_txt="1\n")
    fence = take_over(yard)
    git(yard.folder, *how)
    assert not (yard.folder / ".git" / fence_ref("main")).exists()
    merger = yard.merger()
    assert read_fence(merger.merging.store, "main") == fence
    with pytest.raises(Fenced):
        write_fence(merger.merging.store, "main", "words", "")
    merger.ctx.db.close()
    assert yard.merge("--branch", "one").status == 0
    assert yard.show("one.txt") == "1"
    yard.assert_tidy()


def test_each_takeover_has_a_value_of_its_own_and_a_released_lease_needs_none(yard: Yard) -> None:
    yard.branch("one", one_txt="1\n")
    assert yard.merge("--branch", "one").status == 0
    assert git(yard.folder, "for-each-ref", "refs/rookery/lease/") == ""
    first, second = take_over(yard), take_over(yard)
    assert first != second
    assert git(yard.folder, "rev-parse", fence_ref("main")) == second
    git(yard.folder, "gc", "--quiet", "--prune=now")
    done = subprocess.run(["git", "cat-file", "-e", first], cwd=yard.folder, check=False, capture_output=True)
    assert done.returncode != 0  # nothing keeps the old one


def test_the_fence_of_a_branch_that_is_gone_goes_after_a_week(yard: Yard, clock: Clock) -> None:
    git(yard.folder, "branch", "gone", "main")
    long = "y" * 150 + "/" + "z" * 150
    git(yard.folder, "branch", long, "main")
    for base in ("main", "gone", long):
        take_over(yard, base)
    git(yard.folder, "branch", "-D", "gone", long)

    def left() -> list[str]:
        merger = yard.merger()
        cleanup.prune_refs(merger)
        merger.ctx.db.close()
        return git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/lease/").splitlines()

    assert len(left()) == 3
    clock.advance(hours=8 * 24)
    assert left() == [fence_ref("main")]


def write_hook(yard: Yard, text: str) -> Path:
    hook = yard.folder / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\n{text}\n")
    hook.chmod(0o755)
    return hook


def test_the_database_can_be_written_while_a_hook_of_the_user_takes_its_time(yard: Yard, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    yard.branch("one", one_txt="1\n")
    wait = f"touch {begun}; while ! test -e {go}; do sleep 0.05; done"
    write_hook(yard, f'[ "$1" = prepared ] || exit 0\n! grep -q refs/heads/main || {{ {wait}; }}')
    child = subprocess.Popen(rook_argv("merge", "--branch", "one"), cwd=yard.folder, env=child_environ())
    wait_until(begun.exists, 60)
    assert yard.rook("task", "create", "meanwhile").status == 0
    assert child.poll() is None
    go.touch()
    assert child.wait(60) == 0
    assert yard.states() == {"one": "landed"}


def test_a_git_that_outlives_its_merger_holds_the_next_one_off_until_it_is_through(yard: Yard, tmp_path: Path) -> None:
    """The merger is killed while its git waits for a hook: until that git has ended, it may still move the base."""
    begun, go, over = tmp_path / "begun", tmp_path / "go", tmp_path / "over"
    yard.branch("one", one_txt="1\n")
    yard.branch("two", two_txt="2\n")
    wait = f"touch {begun}; while ! test -e {go}; do sleep 0.05; done"
    hook = write_hook(
        yard,
        f"names=$(cat)\ncase $names in *refs/heads/main*) ;; *) exit 0 ;; esac\n"
        f'[ "$1" != prepared ] || {{ {wait}; }}\n[ "$1" != committed ] || touch {over}',
    )
    child = subprocess.Popen(rook_argv("merge", "--branch", "one"), cwd=yard.folder, env=child_environ())
    wait_until(begun.exists, 60)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    before = yard.main()
    assert yard.merge("--branch", "two").status != 0
    assert yard.main() == before
    go.touch()
    wait_until(over.exists, 60)
    hook.unlink()
    assert yard.show("one.txt") == "1"
    assert yard.merge("run").status == 0
    assert yard.states() == {"one": "landed", "two": "landed"}
    assert (yard.show("one.txt"), yard.show("two.txt")) == ("1", "2")
    events = yard.rook.json("events", "--type", "merge.landed").out.decode().splitlines()
    assert len(events) == 2
    assert git(yard.folder, "status", "--porcelain") == ""


def test_a_process_that_is_started_inside_a_write_transaction_is_noticed(yard: Yard) -> None:
    merger = yard.merger()
    with merger.ctx.db.write(), pytest.raises(RuntimeError, match="inside a write transaction"):
        merger.merging.store.read("version")
    assert merger.merging.store.read("version")
    merger.ctx.db.close()
