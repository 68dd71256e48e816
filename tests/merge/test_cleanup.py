"""Old refs of landings go, but none that is the only one to hold an agent's work."""

from __future__ import annotations

import subprocess

import pytest

from conftest import git
from rookery.merge.landing import cleanup

from .yard import Yard


def refs(yard: Yard) -> set[str]:
    """The branches of the entries whose commits are kept, each with what is kept of it."""
    names = {entry["id"]: entry["branch"] for entry in yard.merge("list", "--all", "--limit", "200").data}
    listed = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/merge/", "refs/rookery/undo/")
    parts = (line.split("/")[2:] for line in listed.splitlines())
    return {f"{kind} {names[merge]}" for kind, merge in parts}


def prune(yard: Yard) -> None:
    """Delete the refs of all landings except the last two."""
    merger = yard.merger()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleanup, "_MOST_ENTRIES", 2)
        patch.setattr(cleanup, "_SLACK", 0)
        cleanup.prune_refs(merger)
    merger.ctx.db.close()


def delete_branch(yard: Yard, name: str) -> None:
    git(yard.folder, "branch", "-qD", name)


@pytest.mark.slow
def test_refs_of_old_landings_are_deleted_and_the_landings_can_still_be_undone(yard: Yard) -> None:
    for name in ("one", "two", "three", "four"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
        delete_branch(yard, name)
    prune(yard)
    assert refs(yard) == {"merge three", "merge four"}
    git(yard.folder, "reflog", "expire", "--expire=all", "--all")
    git(yard.folder, "gc", "-q", "--prune=now")
    assert yard.merge("undo", "one").status == 0
    assert not (yard.folder / "one.txt").exists()
    assert git(yard.folder, "rev-parse", "--verify", "one")
    yard.assert_tidy()


@pytest.mark.slow
def test_what_failed_long_ago_goes_while_its_branch_is_there_and_stays_without_it(yard: Yard) -> None:
    yard.settings("merge:\n  retries: 0\n", "! ls bad*")
    for name in ("bad1", "bad2"):
        yard.branch(name, **{f"{name}_txt": "bad\n"})
        assert yard.merge("--branch", name).status == 1
    only = git(yard.folder, "rev-parse", "bad2")
    delete_branch(yard, "bad2")
    for name in ("one", "two"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
    prune(yard)
    assert refs(yard) == {"merge bad2", "merge one", "merge two"}
    git(yard.folder, "reflog", "expire", "--expire=all", "--all")
    git(yard.folder, "gc", "-q", "--prune=now")
    assert git(yard.folder, "cat-file", "-t", only) == "commit"
    # What was thrown away can be asked about.
    assert yard.merge("explain", "bad1").data["entry"]["kind"] == "gate"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["squash", "rebase"])
def test_a_copy_of_work_whose_branch_is_gone_stays(yard: Yard, strategy: str) -> None:
    yard.settings(f"merge:\n  retries: 0\n  strategy: {strategy}\n", "! ls bad*")
    yard.branch("bad1", bad1_txt="bad\n")
    yard.commit(base_txt="moved\n")
    assert yard.merge("--branch", "bad1").status == 1
    delete_branch(yard, "bad1")
    for name in ("one", "two", "three"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
        delete_branch(yard, name)
    prune(yard)
    # "one" has landed, though its own commit is on no branch: what the base got of it is.
    assert refs(yard) == {"merge bad1", "merge two", "merge three"}


@pytest.mark.slow
def test_what_the_base_has_lost_stays(yard: Yard) -> None:
    before = yard.main()
    for name in ("one", "two", "three"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
        delete_branch(yard, name)
    git(yard.folder, "reset", "-q", "--hard", before)  # a person rewrites the base
    prune(yard)
    assert refs(yard) == {"merge one", "merge two", "merge three"}


@pytest.mark.slow
def test_the_refs_of_an_undone_landing_go_once_its_branch_holds_the_work(yard: Yard) -> None:
    for name in ("one", "two"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
    assert yard.merge("undo", "two").status == 0
    assert yard.merge("undo", "one").status == 0
    assert refs(yard) == {"merge one", "merge two", "undo one", "undo two"}
    for name in ("three", "four"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
    prune(yard)
    assert refs(yard) == {"merge three", "merge four"}
    # What the base was is kept for a person.
    assert len(git(yard.folder, "for-each-ref", "refs/rookery/rescue/undo/").splitlines()) == 2


@pytest.mark.slow
def test_an_undo_that_was_cut_off_keeps_its_refs(yard: Yard) -> None:
    for name in ("one", "two", "three", "four"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
        assert yard.merge("--branch", name).status == 0
    yard.killed("undo recorded", "merge", "undo", "one")
    prune(yard)
    listed = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/")
    assert refs(yard) >= {"merge three", "merge four", "merge one"}
    assert f"refs/rookery/undo/{yard.entry('one')['id']}" in listed


@pytest.mark.slow
def test_few_are_left_alone_and_many_are_pruned_by_a_landing(yard: Yard) -> None:
    tips = {}
    for number in range(cleanup._MOST_ENTRIES + cleanup._SLACK + 3):
        merge = f"mrg_{number:026}"
        tips[merge] = yard.main()
    lines = "".join(f"create refs/rookery/merge/{name} {tip}\n" for name, tip in tips.items())
    subprocess.run(["git", "update-ref", "--stdin"], cwd=yard.folder, input=lines, text=True, check=True)
    yard.branch("one", one_txt="one\n")
    assert yard.merge("--branch", "one").status == 0
    # Of these nothing is on record, so they are not ours to judge.
    assert len(git(yard.folder, "for-each-ref", "refs/rookery/merge/").splitlines()) == len(tips) + 1
    db = yard.rook.open()
    columns = "branch, base, tip, priority, state, attempts, files, requested_by, created_at, updated_at, followed_at"
    with db.write():
        seq = db.value("SELECT seq FROM merges")
        db.execute("UPDATE merges SET seq = ?", (seq + len(tips) + 10,))
        for number, (merge, tip) in enumerate(tips.items()):
            db.execute(
                f"INSERT INTO merges (seq, id, candidate, {columns}) SELECT ?, ?, ?, {columns} FROM merges LIMIT 1",
                (seq + number, merge, tip),
            )
    db.close()
    yard.branch("two", two_txt="two\n")
    assert yard.merge("--branch", "two").status == 0
    left = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/merge/").splitlines()
    assert len(left) < cleanup._MOST_ENTRIES
    assert len([ref for ref in left if "mrg_0000" not in ref]) == 2
