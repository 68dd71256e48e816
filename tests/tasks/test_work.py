"""Tasks and version control together, with real git, through the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Rook, git
from rookery.base.ids import handle

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
    assert started["branch"] == f"rook/human/{handle(task['id'])}"
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


def start_with_work(rook: Rook, task: str) -> str:
    """A task with a committed file on its branch; the checkout is back on main. Returns the tip."""
    assert rook("task", "start", task, "--checkout").status == 0
    (rook.folder / f"{task}.txt").write_text("work")
    git(rook.folder, "add", ".")
    git(rook.folder, "commit", "-qm", "Work")
    git(rook.folder, "switch", "-q", "main")
    return git(rook.folder, "rev-parse", f"rook/human/{handle(task)}")


def state(rook: Rook, task: str) -> str:
    return str(rook.json("task", "get", task).data["state"])


def test_submit_on_the_branch_commits_what_is_there(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    (rook.folder / "new.txt").write_text("work")

    handed_in = rook.json("task", "submit", "--result", "made new.txt", "--learning", "It is short.").data

    assert (handed_in["id"], handed_in["state"]) == (task["id"], "PENDING_REVIEW")
    assert handed_in["commit"] == git(rook.folder, "rev-parse", "HEAD")
    assert git(rook.folder, "status", "--porcelain") == ""
    assert git(rook.folder, "log", "-1", "--format=%B").endswith(f"Task: {task['id']}")
    assert git(rook.folder, "show", "HEAD:new.txt") == "work"
    assert handed_in["result"] == "made new.txt"
    assert [learning["content"] for learning in handed_in["learnings"]["own"]] == ["It is short."]


def test_what_was_submitted_lands_with_all_and_keeps_its_words(rook: Rook) -> None:
    epic = rook.json("epic", "create", "Ship").data["id"]
    task = rook.json("task", "create", "First", "--parent", epic).data["id"]
    later = rook.json("task", "create", "Later", "--parent", epic, "--blocked-by", task).data["id"]
    start_with_work(rook, task)
    assert rook("task", "submit", task, "--result", "made it", "--learning", "It is short.").status == 0
    assert rook.json("task", "next-ready").data is None

    assert rook("merge", "--all").status == 0

    done = rook.json("task", "get", task).data
    assert (done["state"], done["result"]) == ("COMPLETED", "made it")
    assert git(rook.folder, "show", f"main:{task}.txt") == "work"
    assert rook.json("task", "next-ready").data["id"] == later
    assert [item["content"] for item in rook.json("task", "get", later).data["learnings"]["parent"]] == ["It is short."]


def test_submit_elsewhere_hands_the_tip_in_and_commits_nothing(
    rook: Rook, task: dict[str, Any], tmp_path: Path
) -> None:
    tip = start_with_work(rook, task["id"])
    (rook.folder / "unrelated.txt").write_text("mine")

    assert rook.json("task", "submit", task["id"]).data["commit"] == tip

    assert git(rook.folder, "status", "--porcelain") == "?? unrelated.txt"


def test_submit_refuses_to_leave_uncommitted_work_behind(rook: Rook, task: dict[str, Any], tmp_path: Path) -> None:
    tip = start_with_work(rook, task["id"])
    linked = tmp_path / "linked"
    git(rook.folder, "worktree", "add", "-q", str(linked), f"rook/human/{handle(task['id'])}")
    (linked / "more.txt").write_text("more")

    refused = rook.json("task", "submit", task["id"]).error

    assert (refused["code"], state(rook, task["id"])) == ("dirty_checkout", "IN_PROGRESS")
    assert str(linked) in refused["message"]
    handed_in = Rook(linked).json("task", "submit").data
    assert handed_in["commit"] == git(linked, "rev-parse", "HEAD") != tip
    assert git(linked, "show", "HEAD:more.txt") == "more"


def test_submit_needs_a_branch_with_a_commit(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "claim")
    refused = rook.json("task", "submit", task["id"]).error
    assert f"`rook task complete {task['id']}`" in refused["hint"]
    rook.json("task", "start", task["id"])
    refused = rook.json("task", "submit", task["id"]).error
    assert "no commit of its own" in refused["message"]
    assert state(rook, task["id"]) == "IN_PROGRESS"
    assert rook("task", "complete", task["id"]).status == 0


def test_submit_without_a_task_takes_the_one_that_is_held_and_lists_several(rook: Rook) -> None:
    none = rook.json("task", "submit")
    assert (none.status, none.error["code"]) == (1, "invalid_input")
    first, second, third = (rook.json("task", "create", title).data["id"] for title in ("One", "Two", "Three"))
    start_with_work(rook, first)
    assert rook.json("task", "submit").data["id"] == first
    for task in (second, third):
        start_with_work(rook, task)
    several = rook.json("task", "submit").error
    assert [task in several["message"] for task in (first, second, third)] == [False, True, True]
    assert (state(rook, second), state(rook, third)) == ("IN_PROGRESS", "IN_PROGRESS")


def test_only_the_holder_or_a_person_submits(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--agent", "ada", "--checkout")
    (rook.folder / "new.txt").write_text("work")
    before = git(rook.folder, "rev-parse", "HEAD")
    assert rook.json("task", "submit", task["id"], "--agent", "ben").error["code"] == "already_claimed"
    assert git(rook.folder, "rev-parse", "HEAD") == before
    assert rook.json("task", "submit", task["id"], "--agent", "ada").data["state"] == "PENDING_REVIEW"


def test_a_branch_in_a_rebase_is_not_handed_in(rook: Rook, task: dict[str, Any]) -> None:
    start_with_work(rook, task["id"])
    (rook.folder / f"{task['id']}.txt").write_text("theirs")
    git(rook.folder, "add", ".")
    git(rook.folder, "commit", "-qm", "Theirs")
    git(rook.folder, "switch", "-q", f"rook/human/{handle(task['id'])}")
    with pytest.raises(Exception, match="rebase"):
        git(rook.folder, "rebase", "main")
    assert rook.json("task", "submit", task["id"]).error["code"] == "branch_in_use"
    assert state(rook, task["id"]) == "IN_PROGRESS"


def test_complete_is_refused_until_the_work_has_landed(rook: Rook) -> None:
    epic = rook.json("epic", "create", "Ship").data["id"]
    task = rook.json("task", "create", "First", "--parent", epic).data["id"]
    later = rook.json("task", "create", "Later", "--blocked-by", task).data["id"]
    tip = start_with_work(rook, task)
    main, events = git(rook.folder, "rev-parse", "main"), rook.count_events()

    refused = rook.json("task", "complete", task, "--result", "done", "--learning", "It is short.")

    assert (refused.status, refused.error["code"]) == (1, "not_landed")
    assert f"`rook merge --branch rook/human/{handle(task)}`" in refused.error["hint"]
    assert "--result and --learning" in refused.error["hint"]
    assert (rook.count_events(), git(rook.folder, "rev-parse", "main")) == (events, main)
    assert (state(rook, task), state(rook, epic)) == ("IN_PROGRESS", "PENDING")
    assert rook.json("task", "next-ready").data is None

    assert rook("merge", "--branch", f"rook/human/{handle(task)}").status == 0

    assert (state(rook, task), state(rook, epic)) == ("COMPLETED", "COMPLETED")
    assert rook.json("task", "get", task).data["commit"] == tip
    assert rook.json("task", "next-ready").data["id"] == later


def test_what_a_refused_complete_says_works_where_the_branch_was_deleted(rook: Rook, task: dict[str, Any]) -> None:
    tip = start_with_work(rook, task["id"])
    branch = f"rook/human/{handle(task['id'])}"
    assert rook("task", "submit", task["id"]).status == 0
    git(rook.folder, "switch", "-q", "main")
    git(rook.folder, "branch", "-q", "-D", branch)
    for words in (("task", "complete", task["id"]), ("merge", "--branch", branch)):
        hint = rook.json(*words).error["hint"]
        assert f"`git branch {branch} {tip}`" in hint
    git(rook.folder, "branch", branch, tip)
    assert rook("merge", "--branch", branch).status == 0
    assert state(rook, task["id"]) == "COMPLETED"


def test_a_refused_complete_leaves_uncommitted_work_as_it_is(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    (rook.folder / "new.txt").write_text("work")
    head = git(rook.folder, "rev-parse", "HEAD")

    refused = rook.json("task", "complete", task["id"]).error

    assert (refused["code"], state(rook, task["id"])) == ("not_landed", "IN_PROGRESS")
    assert "'new.txt'" in refused["message"]
    assert git(rook.folder, "rev-parse", "HEAD") == head
    assert git(rook.folder, "status", "--porcelain") == "?? new.txt"


@pytest.mark.parametrize("way", ["--no-ff", "--ff-only", "squash", "rebase"])
def test_complete_finds_the_work_whichever_way_it_landed(rook: Rook, task: dict[str, Any], way: str) -> None:
    tip = start_with_work(rook, task["id"])
    branch = f"rook/human/{handle(task['id'])}"
    if way.startswith("--"):
        git(rook.folder, "merge", "-q", way, "--no-edit", branch)
    else:  # landed by rook, and opened again: then only its records tell of it
        (rook.folder / ".rookery" / "config.local.yaml").write_text(f"merge:\n  strategy: {way}\n")
        assert rook("merge", "--branch", branch).status == 0
        assert state(rook, task["id"]) == "COMPLETED"
        rook.json("task", "reopen", task["id"])

    done = rook.json("task", "complete", task["id"], "--result", "made it").data

    assert (done["state"], done["commit"], done["result"]) == ("COMPLETED", tip, "made it")


def test_work_that_landed_and_was_reverted_does_not_count(rook: Rook, task: dict[str, Any]) -> None:
    start_with_work(rook, task["id"])
    branch = f"rook/human/{handle(task['id'])}"
    git(rook.folder, "merge", "-q", "--no-ff", "--no-edit", branch)
    git(rook.folder, "revert", "--no-edit", "-m", "1", "HEAD")
    assert rook.json("task", "complete", task["id"]).error["code"] == "not_landed"
    assert rook("merge", "--branch", branch).status == 0
    assert state(rook, task["id"]) == "COMPLETED"
    assert git(rook.folder, "show", f"main:{task['id']}.txt") == "work"


def test_a_submitted_task_that_was_merged_by_hand_completes(rook: Rook, task: dict[str, Any]) -> None:
    start_with_work(rook, task["id"])
    rook.json("task", "submit", task["id"], "--result", "made it")
    assert rook.json("task", "complete", task["id"]).error["code"] == "not_landed"
    git(rook.folder, "merge", "-q", "--no-edit", f"rook/human/{handle(task['id'])}")
    git(rook.folder, "branch", "-qd", f"rook/human/{handle(task['id'])}")
    done = rook.json("task", "complete", task["id"]).data
    assert (done["state"], done["result"]) == ("COMPLETED", "made it")


def test_a_branch_where_nothing_was_done_completes_by_word(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"])
    git(rook.folder, "commit", "-q", "--allow-empty", "-m", "The base goes on")
    assert rook.json("task", "complete", task["id"]).data["state"] == "COMPLETED"


def test_a_base_that_cannot_be_known_completes_nothing(rook: Rook, task: dict[str, Any]) -> None:
    git(rook.folder, "branch", "-m", "main", "odd")
    (rook.folder / ".rookery" / "config.local.yaml").write_text("project:\n  base: ''\n")
    assert rook("task", "start", task["id"], "--checkout").status == 0
    (rook.folder / "new.txt").write_text("work")
    git(rook.folder, "add", ".")
    git(rook.folder, "commit", "-qm", "Work")
    refused = rook.json("task", "complete", task["id"]).error
    assert refused["code"] == "not_landed"
    assert "set project.base" in refused["message"]


def test_landing_a_branch_leaves_its_task_open_while_more_is_uncommitted_there(
    rook: Rook, task: dict[str, Any], tmp_path: Path
) -> None:
    start_with_work(rook, task["id"])
    branch, linked = f"rook/human/{handle(task['id'])}", tmp_path / "linked"
    git(rook.folder, "worktree", "add", "-q", str(linked), branch)
    (linked / "more.txt").write_text("more")

    (entry,) = rook.json("merge", "--branch", branch).data["entries"]

    assert (entry["state"], state(rook, task["id"])) == ("landed", "IN_PROGRESS")
    assert f"so {task['id']} stays in progress" in entry["reason"]
    assert Rook(linked).json("task", "submit").status == 0
    assert rook("merge", "--all").status == 0
    assert (state(rook, task["id"]), git(rook.folder, "show", "main:more.txt")) == ("COMPLETED", "more")


def test_a_parent_with_unlanded_work_stays_open_when_its_last_child_finishes(rook: Rook) -> None:
    parent = rook.json("task", "create", "Parent").data["id"]
    start_with_work(rook, parent)
    rook.json("task", "release", parent)
    first, second, third = (rook.json("task", "create", name, "--parent", parent).data["id"] for name in "abc")
    rook.json("task", "complete", first)
    rook.json("task", "cancel", second)
    assert rook.json("task", "complete", third).data["state"] == "COMPLETED"
    assert state(rook, parent) == "PENDING"
    assert rook.json("task", "complete", parent).error["code"] == "not_landed"

    assert rook("merge", "--branch", f"rook/human/{handle(parent)}").status == 0

    assert state(rook, parent) == "COMPLETED"


@pytest.mark.parametrize("last", ["complete", "cancel", "land"])
def test_a_parent_whose_branch_has_landed_or_is_empty_completes_with_its_last_child(rook: Rook, last: str) -> None:
    epic = rook.json("epic", "create", "Epic").data["id"]
    parent = rook.json("task", "create", "Parent", "--parent", epic).data["id"]
    rook.json("task", "start", epic)  # begins the parent, which is its only leaf
    rook.json("task", "release", parent)
    first, second = (rook.json("task", "create", name, "--parent", parent).data["id"] for name in "ab")
    rook.json("task", "complete", first)
    if last == "land":
        start_with_work(rook, second)
        assert rook("merge", "--branch", f"rook/human/{handle(second)}").status == 0
    else:
        rook.json("task", last, second)
    assert rook.json("task", "get", parent).data["branch"] is not None
    assert (state(rook, parent), state(rook, epic)) == ("COMPLETED", "COMPLETED")


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
    git(rook.folder, "switch", "-qc", f"rook/ada/{handle(task['id'])}")
    (rook.folder / "new.txt").write_text("late")

    refused = rook.json("task", "complete", task["id"], "--agent", "ada").error

    assert refused["code"] == "already_claimed"
    assert git(rook.folder, "status", "--porcelain") == "?? new.txt"
    assert rook.json("task", "get", task["id"]).data["assignee"] == "ben"


def test_start_is_safe_to_repeat(rook: Rook, task: dict[str, Any]) -> None:
    first = rook.json("task", "start", task["id"]).data
    git(rook.folder, "commit", "-q", "--allow-empty", "-m", "The base goes on")
    again = rook.json("task", "start", task["id"]).data
    assert (again["branch"], again["start_commit"], again["attempt"]) == (first["branch"], first["start_commit"], 1)


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
    for step in ("start", "submit"):
        assert plain.json("task", step, task["id"]).error["code"] == "no_repository"
    assert plain.json("task", "get", task["id"]).data["state"] == "PENDING"
    assert plain.json("task", "complete", task["id"]).data["state"] == "COMPLETED"


def test_unresolved_conflicts_are_not_committed(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    (rook.folder / "README.md").write_text("ours\n")
    git(rook.folder, "commit", "-qam", "Ours")
    git(rook.folder, "switch", "-q", "main")
    (rook.folder / "README.md").write_text("theirs\n")
    git(rook.folder, "commit", "-qam", "Theirs")
    git(rook.folder, "switch", "-q", f"rook/human/{handle(task['id'])}")
    with pytest.raises(Exception, match="merge"):
        git(rook.folder, "merge", "main")

    assert rook.json("task", "submit", task["id"]).error["code"] == "conflicted"
    assert rook.json("task", "complete", task["id"]).error["code"] == "not_landed"
    assert rook.json("task", "get", task["id"]).data["state"] == "IN_PROGRESS"


def test_cleanup_deletes_only_what_has_landed(rook: Rook) -> None:
    landed, unlanded, open_ = (rook.json("task", "create", title).data["id"] for title in ("One", "Two", "Three"))
    for task in (landed, unlanded):
        start_with_work(rook, task)
    rook.json("task", "cancel", unlanded)
    rook.json("task", "start", open_)
    git(rook.folder, "merge", "-q", "--no-edit", f"rook/human/{handle(landed)}")
    rook.json("task", "complete", landed)

    listed = {branch["task_id"]: branch["verdict"] for branch in rook.json("vcs", "cleanup").data}
    assert listed == {landed: "removable", unlanded: "kept", open_: "kept"}

    rook.json("vcs", "cleanup", "--delete")
    left = git(rook.folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/rook").splitlines()
    assert left == sorted([f"rook/human/{handle(unlanded)}", f"rook/human/{handle(open_)}"])


def test_cleanup_keeps_a_branch_that_is_checked_out(rook: Rook, task: dict[str, Any]) -> None:
    rook.json("task", "start", task["id"], "--checkout")
    rook.json("task", "complete", task["id"])
    branches = rook.json("vcs", "cleanup", "--delete").data
    assert [(branch["verdict"], branch["reason"]) for branch in branches] == [("kept", "it is checked out")]
