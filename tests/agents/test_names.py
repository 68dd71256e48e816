"""A name that is used again: a sling that fails leaves the earlier agent of that name as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from rookery.base.ids import handle

_WORK = [{"edit": {"path": "work.txt", "text": "work\n"}}, {"commit": "Work"}, DONE]
_FAILING = ("-c", "provision.setup=exit 7")


@pytest.fixture
def den(repo: Path) -> Den:
    den = Den(repo)
    git(repo, "commit", "--allow-empty", "-qm", "More")
    return den


def finished(den: Den, *more: str) -> str:
    """A task on which bee has worked."""
    task = den.task("First", _WORK)
    den.sling(task, "--name", "bee", *more)
    den.wait_for("bee", "completed")
    return task


def seen(den: Den) -> object:
    """What people see of bee."""
    shown = [den.rook.json(*words).data for words in (["agents", "show", "bee"], ["worktree", "list"])]
    identity = (den.folder / ".rookery/agents/bee/identity.yaml").read_text()
    inspected = re.sub(r"\d+s ago|now$", "", den.rook("inspect", "bee").out.decode(), flags=re.MULTILINE)
    return shown, den.agent("bee"), inspected.split("\n")[:12], identity


@pytest.mark.slow
@pytest.mark.parametrize("cleaned", [True, False])
def test_a_sling_that_fails_leaves_the_agent_of_that_name_as_it_was(den: Den, cleaned: bool) -> None:
    finished(den)
    if cleaned:
        den.rook("worktree", "clean", "bee")
    before = seen(den)
    other = den.task("Second", _WORK)
    refused = den.rook.json("sling", other, "--name", "bee", *_FAILING).error
    assert refused["code"] == ("provision_failed" if cleaned else "name_taken")
    assert seen(den) == before
    assert den.rook.json("task", "get", other).data["branch"] is None
    assert den.rook.json("mail", "send", "bee", "--subject", "Hi", "--body", "Hi").data
    assert den.rook("merge", "--branch", "bee").status == 0
    assert git(den.folder, "show", "main:work.txt") == "work"


@pytest.mark.slow
def test_a_name_whose_worktree_is_still_there_is_refused_with_a_way_that_works(den: Den) -> None:
    finished(den)
    (den.folder / ".rookery/worktrees/bee/more.txt").write_text("more\n")
    other = den.task("Second", _WORK)
    refused = den.rook.json("sling", other, "--name", "bee").error
    assert refused["code"] == "name_taken"
    assert "`rook worktree clean bee`" in refused["hint"]
    cleaned = den.rook.json("worktree", "clean", "bee").data[0]
    assert git(den.folder, "show", f"{cleaned['rescue']}:more.txt") == "more"
    assert den.rook("sling", other, "--name", "bee").status == 0
    den.wait_for("bee", "completed")


@pytest.mark.slow
def test_a_failed_attempt_leaves_the_one_before_it_ready_to_land(den: Den) -> None:
    task = den.task("First", [{"edit": {"path": "work.txt", "text": "work\n"}}, {"commit": "Work"}, {"hang": True}])
    den.sling(task, "--name", "bee")
    branch = f"rook/bee/{handle(task)}"
    start = den.rook.json("task", "get", task).data["start_commit"]
    den.rook("stop", "bee")
    assert den.rook.json("sling", task, "--name", "wasp", *_FAILING).error["code"] == "provision_failed"
    after = den.rook.json("task", "get", task).data
    assert (after["branch"], after["start_commit"], after["state"]) == (branch, start, "PENDING")


@pytest.mark.slow
def test_a_sling_that_fails_on_the_same_task_keeps_the_earlier_worktree(den: Den) -> None:
    task = den.task("First", [{"hang": True}])
    den.sling(task, "--name", "bee")
    den.rook("stop", "bee")
    assert den.rook.json("sling", task, "--name", "bee", *_FAILING).error["code"] == "provision_failed"
    assert (den.folder / ".rookery/worktrees/bee/.git").exists()
    assert den.agent("bee")["outcome"] == "stopped"
    assert git(den.folder, "branch", "--list", f"rook/bee/{handle(task)}")


@pytest.mark.slow
def test_a_branch_with_commits_is_refused_with_two_ways_that_work(den: Den) -> None:
    task = den.task("First", [{"edit": {"path": "work.txt", "text": "work\n"}}, {"commit": "Work"}, {"crash": 4}])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "crashed")
    refused = den.rook.json("sling", task, "--name", "bee").error
    assert refused["message"] == f"rook/bee/{handle(task)} already has commits"
    assert refused["hint"] == "continue with `rook resume bee`, or choose another --name"
    assert den.rook("sling", task, "--name", "wasp").status == 0
    den.rook("stop", "wasp")
    assert den.rook("resume", "bee").status == 0
