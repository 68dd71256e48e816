"""Tasks and version control together, with real git, through the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Rook, git

pytestmark = pytest.mark.slow


@pytest.fixture
def rook(repo: Path) -> Rook:
    """Runs `rook` in a project as `rook init` makes it."""
    runner = Rook(repo)
    assert runner("init", "--yes").status == 0
    return runner


@pytest.fixture
def task(rook: Rook) -> dict[str, Any]:
    """A task in a project with one commit."""
    task: dict[str, Any] = rook.json("task", "create", "Do it\nproperly; $(rm -rf /)").data
    return task


def test_start_makes_a_branch_and_touches_no_checkout(rook: Rook, task: dict[str, Any]) -> None:
    (rook.folder / "README.md").write_text("half done\n")
    head = git(rook.folder, "rev-parse", "HEAD")

    started = rook.json("task", "start", task["id"]).data

    assert started["state"] == "IN_PROGRESS"
    assert started["branch"] == f"rook/human/{task['id']}"
    assert started["start_commit"] == head == git(rook.folder, "rev-parse", started["branch"])
    assert git(rook.folder, "branch", "--show-current") == "main"
    assert (rook.folder / "README.md").read_text() == "half done\n"


def test_start_with_checkout_switches_a_clean_checkout(rook: Rook, task: dict[str, Any]) -> None:
    started = rook.json("task", "start", task["id"], "--checkout").data
    assert git(rook.folder, "branch", "--show-current") == started["branch"]


def test_start_with_checkout_refuses_a_dirty_one_and_starts_nothing(rook: Rook, task: dict[str, Any]) -> None:
    (rook.folder / "new.txt").write_text("mine")
    before = rook.count_events()

    assert rook.json("task", "start", task["id"], "--checkout").error["code"] == "dirty_checkout"

    assert rook.count_events() == before
    assert rook.json("task", "get", task["id"]).data["state"] == "PENDING"
    assert git(rook.folder, "branch", "--list", "rook/*") == ""


def test_complete_on_the_branch_commits_what_is_there(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    (rook.folder / "new.txt").write_text("work")

    done = rook.json("task", "complete", task["id"], "--result", "made new.txt").data

    assert done["state"] == "COMPLETED"
    assert done["commit"] == git(rook.folder, "rev-parse", "HEAD")
    assert git(rook.folder, "status", "--porcelain") == ""
    assert git(rook.folder, "log", "-1", "--format=%B").endswith(f"Task: {task['id']}")
    assert git(rook.folder, "show", "HEAD:new.txt") == "work"


def test_complete_elsewhere_records_the_tip_and_commits_nothing(
    rook: Rook, task: dict[str, Any], tmp_path: Path
) -> None:
    branch = rook.json("task", "start", task["id"]).data["branch"]
    linked = tmp_path / "linked"
    git(rook.folder, "worktree", "add", "-q", str(linked), branch)
    (linked / "new.txt").write_text("work")
    git(linked, "add", ".")
    git(linked, "commit", "-qm", "Work")
    (rook.folder / "unrelated.txt").write_text("mine")

    done = rook.json("task", "complete", task["id"]).data

    assert done["commit"] == git(rook.folder, "rev-parse", branch)
    assert git(rook.folder, "status", "--porcelain") == "?? unrelated.txt"


def test_complete_in_a_linked_worktree_finds_the_project(rook: Rook, task: dict[str, Any], tmp_path: Path) -> None:
    branch = rook.json("task", "start", task["id"]).data["branch"]
    linked = tmp_path / "linked"
    git(rook.folder, "worktree", "add", "-q", str(linked), branch)
    (linked / "new.txt").write_text("work")

    done = Rook(linked).json("task", "complete", task["id"]).data

    assert done["commit"] == git(linked, "rev-parse", "HEAD")
    assert rook.json("task", "get", task["id"]).data["state"] == "COMPLETED"


def test_a_refused_complete_commits_nothing(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    rook.json("task", "create", "A child", "--parent", task["id"])
    (rook.folder / "new.txt").write_text("work")
    head = git(rook.folder, "rev-parse", "HEAD")

    assert rook.json("task", "complete", task["id"]).error["code"] == "pending_children"

    assert git(rook.folder, "rev-parse", "HEAD") == head
    assert git(rook.folder, "status", "--porcelain") == "?? new.txt"


def test_a_fenced_complete_commits_nothing(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "claim", "--agent", "ada", "--lease", "0.001s")
    rook.json("task", "claim", "--agent", "ben", "--lease", "1h")
    git(rook.folder, "switch", "-qc", f"rook/ada/{task['id']}")
    (rook.folder / "new.txt").write_text("late")

    refused = rook.json("task", "complete", task["id"], "--agent", "ada").error

    assert refused["code"] == "already_claimed"
    assert git(rook.folder, "status", "--porcelain") == "?? new.txt"
    assert rook.json("task", "get", task["id"]).data["assignee"] == "ben"


def test_start_is_safe_to_repeat(rook: Rook, task: dict[str, Any]) -> None:
    first = rook.json("task", "start", task["id"]).data
    git(rook.folder, "commit", "-q", "--allow-empty", "-m", "The base goes on")
    again = rook.json("task", "start", task["id"]).data
    assert (again["branch"], again["start_commit"], again["attempts"]) == (first["branch"], first["start_commit"], 1)


def test_start_on_a_parent_starts_its_next_leaf(rook: Rook, task: dict[str, Any]) -> None:
    first = rook.json("task", "create", "First", "--parent", task["id"], "--priority", "2").data
    rook.json("task", "create", "Second", "--parent", task["id"], "--blocked-by", first["id"], "--priority", "1")
    assert rook.json("task", "start", task["id"]).data["id"] == first["id"]


def test_a_task_that_another_holds_cannot_be_started(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--agent", "ada")
    assert rook.json("task", "start", task["id"], "--agent", "ben").error["code"] == "already_claimed"


def test_a_blocked_task_cannot_be_started(rook: Rook, task: dict[str, Any]) -> None:
    waiting = rook.json("task", "create", "Later", "--blocked-by", task["id"]).data
    assert rook.json("task", "start", waiting["id"]).error["code"] == "not_ready"


def test_a_repository_without_a_commit_says_so(rook: Rook, task: dict[str, Any], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    fresh = Rook(empty)
    fresh("init", "--yes")
    first = fresh.json("task", "create", "First").data
    refused = fresh.json("task", "start", first["id"]).error
    assert (refused["code"], refused["hint"]) == ("invalid_state", "make a first commit")


def test_without_a_repository_tasks_work_and_start_says_why_not(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    plain = Rook(folder)
    assert plain.json("init", "--yes").error["code"] == "no_repository"
    assert list(folder.iterdir()) == []
    assert plain("init", "--yes", "--force").status == 0

    task = plain.json("task", "create", "Plan").data
    assert plain.json("task", "list").data[0]["id"] == task["id"]
    for step in ("start", "complete"):
        assert plain.json("task", step, task["id"]).error["code"] == "no_repository"
    assert plain.json("task", "get", task["id"]).data["state"] == "PENDING"


def test_unresolved_conflicts_are_not_committed(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    (rook.folder / "README.md").write_text("ours\n")
    git(rook.folder, "commit", "-qam", "Ours")
    git(rook.folder, "switch", "-q", "main")
    (rook.folder / "README.md").write_text("theirs\n")
    git(rook.folder, "commit", "-qam", "Theirs")
    git(rook.folder, "switch", "-q", f"rook/human/{task['id']}")
    with pytest.raises(Exception, match="merge"):
        git(rook.folder, "merge", "main")

    assert rook.json("task", "complete", task["id"]).error["code"] == "conflicted"
    assert rook.json("task", "get", task["id"]).data["state"] == "IN_PROGRESS"


def test_cleanup_deletes_only_what_has_landed(rook: Rook) -> None:
    landed, unlanded, open_ = (rook.json("task", "create", title).data["id"] for title in ("One", "Two", "Three"))
    for task in (landed, unlanded):
        rook.json("task", "start", task, "--checkout")
        (rook.folder / f"{task}.txt").write_text("work")
        rook.json("task", "complete", task)
        git(rook.folder, "switch", "-q", "main")
    rook.json("task", "start", open_)
    git(rook.folder, "merge", "-q", "--no-edit", f"rook/human/{landed}")

    listed = {branch["task_id"]: branch["verdict"] for branch in rook.json("vcs", "cleanup").data}
    assert listed == {landed: "removable", unlanded: "kept", open_: "kept"}

    rook.json("vcs", "cleanup", "--delete")
    left = git(rook.folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/rook").splitlines()
    assert left == sorted([f"rook/human/{unlanded}", f"rook/human/{open_}"])


def test_cleanup_keeps_a_branch_that_is_checked_out(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    rook.json("task", "complete", task["id"])
    branches = rook.json("vcs", "cleanup", "--delete").data
    assert [(branch["verdict"], branch["reason"]) for branch in branches] == [("kept", "it is checked out")]
