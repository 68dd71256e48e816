"""The commit of a landing names its reviewers, and none if there was no review."""

from __future__ import annotations

import json

import pytest

from conftest import git
from rookery.tasks import store as tasks
from rookery.tasks.store import Author

from .yard import Yard

_EDIT = [{"edit": {"path": "bee.txt", "text": "bee\n"}}, {"commit": "Write bee.txt"}]


def approve(yard: Yard, task_id: str, by: str) -> None:
    """What a reviewer does to a task that was handed over."""
    db = yard.rook.open()
    with db.write():
        task = tasks.get(db, task_id)
        tasks.take_step(db, task, "approve", Author(by, task.updated_at))
    db.close()


def say_ready(yard: Yard, branch: str, task_id: str) -> None:
    """A person says that a branch is checked and may land."""
    payload = json.dumps({"branch": branch, "task_id": task_id})
    words = ("--subject", "Checked", "--body", "It is good.", "--type", "merge_ready", "--payload", payload)
    assert yard.rook("mail", "send", "human", *words).status == 0


def reviewers(yard: Yard) -> list[str]:
    """The reviewers that the last commit of the base names, as git reads its trailers."""
    trailers = git(yard.folder, "log", "-1", "--format=%(trailers:key=Reviewed-by,valueonly)", "main")
    return trailers.split()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_who_approved_the_task_is_named(yard: Yard, strategy: str) -> None:
    yard.settings(f"merge:\n  strategy: {strategy}\n")
    task = yard.finished("bee", _EDIT)
    approve(yard, task, "owl")
    assert yard.merge("--all").status == 0
    assert reviewers(yard) == ["owl"]


@pytest.mark.slow
def test_an_agent_that_approved_by_mail_is_named(yard: Yard) -> None:
    task = yard.finished("bee", _EDIT)
    say_ready(yard, "another", task)
    say_ready(yard, yard.agent("bee")["branch"], task)
    assert yard.merge("--all").status == 0
    assert reviewers(yard) == ["human"]


@pytest.mark.slow
def test_no_reviewer_is_named_without_a_review(yard: Yard) -> None:
    task = yard.finished("bee", _EDIT)
    say_ready(yard, "another", task)
    assert yard.merge("--all").status == 0
    assert reviewers(yard) == []


@pytest.mark.slow
def test_no_agent_reviews_its_own_work(yard: Yard) -> None:
    payload = {"branch": "rook/{agent}/{handle}", "task_id": "{task}"}
    praise = {"mail": {"to": "{parent}", "type": "merge_ready", "subject": "Good", "payload": payload}}
    task = yard.finished("bee", [*_EDIT, praise])
    branch = yard.agent("bee")["branch"]
    assert [message["payload"]["branch"] for message in yard.mail(type="merge_ready")] == [branch]
    approve(yard, task, "bee")
    assert yard.merge("--all").status == 0
    assert reviewers(yard) == []


@pytest.mark.slow
def test_what_went_on_after_the_approval_is_not_reviewed(yard: Yard) -> None:
    task = yard.finished("bee", _EDIT)
    approve(yard, task, "owl")
    say_ready(yard, yard.agent("bee")["branch"], task)
    worktree = yard.folder / ".rookery/worktrees/bee"
    (worktree / "bee.txt").write_text("more\n")
    git(worktree, "commit", "-qam", "Go on")
    assert yard.merge("--branch", "bee").status == 0
    assert yard.show("bee.txt") == "more"
    assert reviewers(yard) == []


@pytest.mark.slow
def test_an_approval_counts_for_one_landing(yard: Yard) -> None:
    task = yard.finished("bee", _EDIT)
    approve(yard, task, "owl")
    assert yard.merge("--branch", "bee").status == 0
    assert yard.merge("undo", "bee").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING"
    assert yard.merge("retry", "bee").status == 0
    assert yard.merge("run").status == 0
    assert list(yard.states().values()) == ["landed"]
    assert reviewers(yard) == []
