"""The queue: batches, the search for the culprit, the number of gate runs, and the messages to agents."""

from __future__ import annotations

from contextlib import closing
from itertools import combinations
from pathlib import Path

import pytest

from conftest import git
from rookery.merge import run, service

from .yard import Yard


def fill(yard: Yard, good: int, bad: tuple[int, ...] = (), conflicting: int = 0) -> list[str]:
    """Queue branches; the positions in `bad` break the tests, and some more conflict with the first."""
    yard.commit(shared_txt="1\n2\n3\n")
    names = []
    for number in range(good + len(bad)):
        name = f"{'bad' if number in bad else 'good'}{number:02}"
        more = {"bad_txt" if number in bad else f"{name}_txt": f"{name}\n"}
        if number in bad:
            more = {f"{name}_txt": "broken\n"}
        yard.branch(name, **more, **({"shared_txt": "1\nx\n3\n"} if name == "good00" else {}))
        names.append(name)
    for number in range(conflicting):
        yard.branch(f"clash{number}", shared_txt=f"1\ny{number}\n3\n")
        names.append(f"clash{number}")
    assert yard.rook("merge", "enqueue", *names).status == 0
    return names


@pytest.mark.slow
def test_a_queue_with_culprits_and_conflicts_lands_the_good_with_fewer_runs(yard: Yard, tmp_path: Path) -> None:
    count, trees = tmp_path / "count", tmp_path / "trees"
    gate = f"git rev-parse HEAD^{{tree}} >> {trees}; echo x >> {count}; ! grep -l broken *.txt"
    yard.settings("merge:\n  tiers: []\n", gate)
    names = fill(yard, 15, (4, 11), conflicting=3)
    assert len(names) == 20
    data = yard.merge("run").envelope["data"]
    states = yard.states()
    assert sorted(name for name, state in states.items() if state == "landed") == [n for n in names if "good" in n]
    assert {name: yard.entry(name)["kind"] for name in states if states[name] == "failed"} == {
        "bad04": "gate",
        "bad11": "gate",
        "clash0": "conflict",
        "clash1": "conflict",
        "clash2": "conflict",
    }
    runs = len(count.read_text().splitlines())
    assert runs == data["gate_runs"]
    # One by one: a run for each of the 17 that merge, and the retry of the two that fail.
    serial = 17 + 2
    assert runs <= 0.65 * serial, f"{runs} of {serial}"
    assert all(yard.contains(name) for name in names if "good" in name)
    assert not any(yard.contains(name) for name in names if "good" not in name)
    yard.assert_tidy()


def simulate(bad: set[int], count: int, most: int = 8) -> int:
    """The gate runs that the policy takes for a queue with these culprits, retries included."""
    queue, runs, gated, failed = list(range(count)), 0, 0, 0

    def settle(stack: list[int], is_red: bool = False) -> list[int]:
        nonlocal runs, gated, failed
        if not is_red:
            runs += 1
            if not bad & set(stack):
                gated += len(stack)
                return []
        if len(stack) == 1:
            runs += 1  # the retry
            gated, failed = gated + 1, failed + 1
            return []
        cut = len(stack) // 2
        left, right = stack[:cut], stack[cut:]
        runs += 1
        if not bad & set(left):
            gated += len(left)
            return settle(right, is_red=True)
        return settle(left, is_red=True) + right

    size = sized_at = 0
    while queue:
        if size == 0 or gated >= sized_at + run.SEASON:
            size, sized_at = run.batch_size(gated, failed, most), gated
        stack, queue = queue[:size], queue[size:]
        queue = sorted(settle(stack)) + queue
    return runs


def test_wherever_the_culprits_are_it_saves_runs() -> None:
    runs = [simulate(set(bad), 17) for bad in combinations(range(17), 2)]
    serial = 17 + 2
    assert sum(runs) / len(runs) <= 0.6 * serial
    assert max(runs) <= 0.65 * serial


def test_batches_grow_while_little_fails_and_shrink_when_much_does() -> None:
    assert run.batch_size(0, 0, 8) == 4
    assert run.batch_size(40, 0, 8) == 7
    assert run.batch_size(40, 0, 4) == 4
    assert run.batch_size(20, 2, 8) == 3
    assert run.batch_size(20, 8, 8) == 2
    assert run.batch_size(20, 20, 8) == 1
    assert run.batch_size(40, 0, 5) == 5
    assert run.batch_size(40, 0, 1) == 1


@pytest.mark.slow
def test_a_batch_of_one_lands_one_by_one(yard: Yard, tmp_path: Path) -> None:
    count = tmp_path / "count"
    yard.settings("merge:\n  batch: 1\n", f"echo x >> {count}")
    fill(yard, 3)
    assert yard.merge("run").data["gate_runs"] == 3


@pytest.mark.slow
def test_branches_that_only_fail_together_are_told_apart(yard: Yard) -> None:
    yard.settings("", "! test -e a.txt || ! test -e b.txt")
    yard.branch("one", a_txt="a\n")
    yard.branch("two", b_txt="b\n")
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "two": "failed"}


@pytest.mark.parametrize("retried", [False, True])
def test_a_retry_counts_against_a_branch(yard: Yard, retried: bool) -> None:
    yard.settings("merge:\n  retries: 0\n", "! test -e bad.txt")
    yard.branch("bad", bad_txt="b\n")
    assert yard.merge("--branch", "bad").status == 1
    if retried:
        assert b"`rook merge run --into main` lands it." in yard.rook("merge", "retry", "bad").out
    yard.branch("fresh", a_txt="a\n")
    yard.rook("merge", "enqueue", "fresh")
    if not retried:
        assert [entry["branch"] for entry in yard.merge("list").data] == ["fresh"]
        return
    assert [entry["branch"] for entry in yard.merge("list").data] == ["fresh", "bad"]
    assert yard.entry("bad")["attempts"] == 1


def test_what_is_being_landed_is_listed_before_the_queue(yard: Yard) -> None:
    fill(yard, 4)
    merger = yard.merger()
    with closing(merger.ctx.db) as db:
        for branch in ("good02", "good01"):
            db.execute("UPDATE merges SET state = 'testing' WHERE branch = ?", (branch,))
        entries = [service.listing(db, everything=False, limit=limit, cursor=None) for limit in (0, 1)]
        branches = [entry.branch for entry in entries[0]]
        assert branches == ["good01", "good02", "good00", "good03"]
        page = service.listing(db, everything=True, limit=2, cursor=entries[1].next)
        assert [entry.branch for entry in page] == ["good02", "good00"]


@pytest.mark.slow
def test_a_list_without_what_failed_says_how_many_failed(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n", "! ls | grep bad")
    hint = b"not shown: `rook merge list --all`"
    assert hint not in yard.rook("merge", "list").out
    yard.branch("one", bad_txt="1\n")
    yard.branch("two", bad_txt="2\n")
    for _ in range(2):  # two entries of one branch are one that failed
        assert yard.merge("--branch", "one").status == 1
    assert b"The queue is empty.\n1 failed entry " + hint in yard.rook("merge", "list").out
    assert hint not in yard.rook("merge", "list", "--all").out
    assert yard.merge("--branch", "two").status == 1
    assert b"2 failed entries " + hint in yard.rook("merge", "list").out
    git(yard.folder, "update-ref", "refs/heads/one", yard.branch("better", good_txt="1\n"))
    assert yard.merge("--branch", "one").status == 0
    assert b"1 failed entry " + hint in yard.rook("merge", "list").out


def test_a_page_goes_on_after_an_entry_that_has_left_the_queue(yard: Yard) -> None:
    fill(yard, 4)
    with closing(yard.merger().ctx.db) as db:
        first = service.listing(db, everything=False, limit=2, cursor=None)
        assert [entry.branch for entry in first] == ["good00", "good01"]
        db.execute("UPDATE merges SET state = 'cancelled' WHERE branch = 'good01'")
        page = service.listing(db, everything=False, limit=2, cursor=first.next)
        assert [entry.branch for entry in page] == ["good02", "good03"]
