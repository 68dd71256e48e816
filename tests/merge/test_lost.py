"""The doctor reports completed tasks whose work has left its base, and says how to bring it back."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import git
from rookery.base.ids import handle
from rookery.merge.landing import lost
from rookery.processes.process import Finished
from rookery.tasks import store as tasks
from rookery.tasks.store import Author, insert
from rookery.vcs.git.repository import GitStore

from .yard import Yard

pytestmark = pytest.mark.slow


def land(yard: Yard, name: str, **files: str) -> str:
    """A task of a person's whose branch has landed; returns the task."""
    task = str(yard.rook.json("task", "create", name).data["id"])
    assert yard.rook("task", "start", task, "--checkout").status == 0
    yard.commit(**files)
    git(yard.folder, "switch", "-q", "main")
    assert yard.merge("--branch", f"rook/human/{handle(task)}").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"
    return task


def findings(yard: Yard) -> list[dict[str, Any]]:
    checks = yard.rook.json("doctor", "--category", "merge").data["checks"]
    return [check for check in checks if check["name"] == "completed"]


def lost_tasks(yard: Yard) -> list[str]:
    merger = yard.merger()
    try:
        return sorted(work.task.id for work in lost.find_lost(merger).lost)
    finally:
        merger.ctx.close()


@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_a_base_that_was_reset_is_reported_and_what_was_lost_lands_again(yard: Yard, strategy: str) -> None:
    yard.settings(f"merge:\n  strategy: {strategy}\n")
    kept = land(yard, "Kept", a_txt="a\n")
    before = yard.main()
    gone = land(yard, "Gone", b_txt="b\n")
    assert [check["status"] for check in findings(yard)] == ["ok"]
    git(yard.folder, "reset", "-q", "--hard", before)

    (finding,) = findings(yard)

    assert finding["status"] == "warning"
    assert (gone in finding["message"], kept in finding["message"]) == (True, False)
    assert f"rook/human/{handle(gone)} holds it" in finding["message"]
    assert yard.rook("task", "reopen", gone).status == 0
    assert yard.merge("--branch", f"rook/human/{handle(gone)}").status == 0
    assert (yard.show("b.txt"), yard.rook.json("task", "get", gone).data["state"]) == ("b", "COMPLETED")
    assert [check["status"] for check in findings(yard)] == ["ok"]


def test_work_without_a_branch_is_found_by_the_ref_of_its_landing(yard: Yard) -> None:
    before = yard.main()
    gone = land(yard, "Gone", b_txt="b\n")
    branch, tip = f"rook/human/{handle(gone)}", git(yard.folder, "rev-parse", f"rook/human/{handle(gone)}")
    git(yard.folder, "branch", "-qD", branch)
    git(yard.folder, "reset", "-q", "--hard", before)
    (finding,) = findings(yard)
    assert "refs/rookery/merge/" in finding["message"]
    assert finding["hint"].startswith(f"`git branch {branch} {tip}`")
    git(yard.folder, "branch", branch, tip)
    yard.rook.json("task", "reopen", gone)
    assert yard.merge("--branch", branch).status == 0
    assert yard.show("b.txt") == "b"


@pytest.mark.parametrize("way", ["merge", "squash", "rebase", "by hand", "fast-forward"])
def test_a_revert_by_hand_is_reported_until_it_is_reverted_itself(yard: Yard, way: str) -> None:
    if way in ("merge", "squash", "rebase"):
        yard.settings(f"merge:\n  strategy: {way}\n")
        task = land(yard, "Gone", b_txt="b\n")
    else:
        task = str(yard.rook.json("task", "create", "Gone").data["id"])
        yard.rook.json("task", "start", task, "--checkout")
        yard.commit(b_txt="b\n")
        git(yard.folder, "switch", "-q", "main")
        how = "--no-ff" if way == "by hand" else "--ff-only"
        git(yard.folder, "merge", "-q", how, "--no-edit", f"rook/human/{handle(task)}")
        assert yard.rook("task", "complete", task).status == 0
    land(yard, "Other", c_txt="c\n")
    landed = git(yard.folder, "log", "-1", "--first-parent", "--format=%H", "main", "--", "b.txt")
    is_merge = len(git(yard.folder, "rev-list", "--parents", "-1", landed).split()) > 2
    assert lost_tasks(yard) == []

    git(yard.folder, "revert", "--no-edit", *(("-m", "1") if is_merge else ()), landed)
    assert lost_tasks(yard) == [task]

    git(yard.folder, "revert", "--no-edit", "HEAD")
    assert lost_tasks(yard) == []


def test_a_rebased_base_has_lost_nothing_that_it_has_under_other_ids(yard: Yard) -> None:
    first = yard.main()
    yard.branch("upstream", d_txt="d\n")
    land(yard, "One", b_txt="b\n")
    gone = land(yard, "Two", c_txt="c\n")
    git(yard.folder, "rebase", "-q", "upstream")
    assert git(yard.folder, "merge-base", "main", f"rook/human/{handle(gone)}") == first
    assert lost_tasks(yard) == []
    git(yard.folder, "reset", "-q", "--hard", "HEAD~1")
    assert lost_tasks(yard) == [gone]


def test_a_task_whose_commits_were_never_here_is_unknown_not_fine(yard: Yard) -> None:
    task = land(yard, "One", b_txt="b\n")
    merger = yard.merger()
    db = merger.ctx.db

    with db.write():
        foreign = tasks.get(db, task).replace(id=task[:-4] + "ZZZZ", branch="rook/x/y", commit="1" * 40)
        insert(db, foreign, Author("human", merger.ctx.now()))
    report = lost.find_lost(merger)
    merger.ctx.close()
    assert (report.lost, report.unknown) == ((), (foreign.id,))


def test_many_completed_tasks_cost_few_gits(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    task = land(yard, "One", b_txt="b\n")
    merger = yard.merger()
    db = merger.ctx.db

    with db.write():
        one = tasks.get(db, task)
        for number in range(300):
            copy = one.replace(id=f"{task[:-4]}{number:04}", branch=f"rook/x/{number}")
            insert(db, copy, Author("human", merger.ctx.now()))
    calls: list[tuple[str, ...]] = []
    run = GitStore.run

    def counted(self: GitStore, *args: str, **more: Any) -> Finished:
        calls.append(args)
        return run(self, *args, **more)

    monkeypatch.setattr(GitStore, "run", counted)
    report = lost.find_lost(merger)
    merger.ctx.close()
    assert (report.looked_at, report.lost) == (301, ())
    assert len(calls) < 10
