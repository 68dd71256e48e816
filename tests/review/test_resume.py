"""An agent that has ended goes on: same branch, worktree, conversation; killed or refused, all is as before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den

pytestmark = pytest.mark.slow

FIRST = [{"edit": {"path": "work.txt", "text": "first\n"}}, {"commit": "First"}]
SECOND = [{"edit": {"path": "work.txt", "text": "second\n"}}, {"commit": "Second"}, DONE]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def stopped(den: Den, *steps: object) -> str:
    """An agent `bee` that did these steps and was stopped; its task."""
    task = den.task("Task", [*steps, {"wait": "mail"}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    return task


def sessions(den: Den) -> list[tuple[str, str, str, str]]:
    db = den.rook.open()
    rows = db.all(
        "SELECT id, coalesce(outcome, state), coalesce(json_extract(settings, '$.resumed_from'), ''), runtime_session "
        "FROM sessions WHERE agent = 'bee' ORDER BY seq"
    )
    db.close()
    return rows


@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_a_stopped_agent_goes_on_with_branch_worktree_and_conversation(den: Den, mode: str) -> None:
    loose = {"edit": {"path": "loose.txt", "text": "loose\n"}}
    task = den.task("Task", [*FIRST, loose, {"wait": "mail"}, *SECOND])
    den.sling(task, "--name", "bee", mode)
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"

    resumed = den.rook.json("resume", "bee").data

    assert (resumed["is_recreated"], resumed["restored"], resumed["has_conversation"]) == (False, None, True)
    assert den.rook.json("task", "get", task).data["assignee"] == "bee"
    den.wait_for("bee", "completed")
    (old, outcome, _, conversation), (_, now, earlier, same) = sessions(den)
    assert (outcome, now, earlier, conversation) == ("stopped", "completed", old, same)
    assert git(den.folder, "log", "--format=%s", f"rook/bee/{task}", "^main").splitlines() == ["Second", "First"]
    assert (den.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "loose\n"
    assert den.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    den.assert_no_process()


@pytest.mark.parametrize("how", ["cleaned", "lost"])
def test_a_worktree_that_is_gone_is_made_again_with_what_was_not_committed(den: Den, how: str) -> None:
    task = stopped(den, *FIRST, {"edit": {"path": "loose.txt", "text": "loose\n"}})
    tree = den.folder / ".rookery/worktrees/bee"
    if how == "cleaned":
        assert den.rook("worktree", "clean", "bee").status == 0
    else:
        shutil.rmtree(tree)
    assert not tree.exists()

    resumed = den.rook.json("resume", "bee").data

    assert resumed["is_recreated"]
    assert resumed["restored"].startswith("refs/rookery/" + ("rescue" if how == "cleaned" else "snapshots"))
    den.wait_for("bee", "completed")
    assert (tree / "loose.txt").read_text() == "loose\n"
    assert git(den.folder, "show", f"rook/bee/{task}:work.txt") == "second"
