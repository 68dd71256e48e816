"""Several attempts at one task side by side, of which one is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import git
from den import Den
from rookery.base.ids import handle

pytestmark = pytest.mark.slow


def attempt(den: Den, task: str, name: str, text: str, *more: str) -> None:
    """An attempt that a person has worked on in the agent's worktree, and that was stopped then."""
    place = Path(den.sling(task, "--name", name, *more)["worktree"])
    den.wait_for(name, "waiting")
    (place / "README.md").write_text(text)
    git(place, "commit", "-qam", f"By {name}")
    den.rook("stop", name)


def test_attempts_are_compared_and_one_is_kept(repo: Path) -> None:
    den = Den(repo)
    task = den.task("Work", [{"wait": "mail"}])
    attempt(den, task, "bee", "one\ntwo\n")
    attempt(den, task, "wasp", "three\n")
    assert den.rook.json("sling", task, "--name", "ant", "-c", "provision.setup=exit 7").status == 1
    before = git(repo, "count-objects")
    result = den.rook.json("compare", task).data
    assert git(repo, "count-objects") == before
    assert [(one["agent"], one["commits"], one["files"], one["is_current"]) for one in result["attempts"]] == [
        ("bee", 1, 1, False),
        ("wasp", 1, 1, True),
    ]
    assert [one["added"] for one in result["attempts"]] == [2, 1]
    assert [one["conflicts"] for one in result["attempts"]] == [[], []]
    kept = den.rook.json("compare", task, "--keep", "bee").data
    assert [one["is_current"] for one in kept["attempts"]] == [True, False]
    assert kept["state"] == "PENDING_REVIEW"
    assert den.rook.json("compare", task, "--keep", "bee").data == kept
    assert den.rook.json("compare", task, "--keep", "wasp").data["state"] == "PENDING_REVIEW"  # changed one's mind
    den.rook("compare", task, "--keep", "bee")
    assert b"wasp" in den.rook("compare", task).out
    den.rook("review", "approve", task)
    assert den.rook.json("compare", task, "--keep", "bee").data["state"] == "APPROVED"
    assert den.rook.json("compare", task, "--keep", "wasp").error["code"] == "invalid_state"
    assert den.rook("merge", "--all").status == 0
    assert git(repo, "show", "main:README.md") == "one\ntwo"
    assert den.rook.json("task", "get", task).data["state"] == "COMPLETED"
    assert git(repo, "branch", "--list", f"rook/wasp/{handle(task)}")
    landed, other = den.rook.json("compare", task).data["attempts"]
    assert not git(repo, "branch", "--list", f"rook/bee/{handle(task)}")
    assert [landed[key] for key in ("has_landed", "commits", "files", "added", "conflicts")] == [True, 1, 1, 2, []]
    assert (other["has_landed"], other["conflicts"]) == (False, ["README.md"])
    assert b" landed " in den.rook("compare", task).out
    landing = [row for row in den.rook("prime").out.decode().splitlines() if "merge landed" in row]
    assert len(landing) == 1
    assert not landing[0].endswith(": landed")
    assert den.rook.json("compare", task, "--keep", "wasp").error["code"] == "invalid_state"


def test_an_attempt_without_a_commit_has_no_verdicts_but_those_of_its_own(repo: Path) -> None:
    den = Den(repo)
    with (repo / ".rookery" / "config.local.yaml").open("a") as settings:
        settings.write("gates:\n  - {name: unit, run: 'true'}\n")
    assert den.rook("gate", "run").status == 0  # on what the base holds
    task = den.task("Work", [{"wait": "mail"}])
    attempt(den, task, "bee", "one\n")
    place = Path(den.sling(task, "--name", "wasp")["worktree"])
    den.wait_for("wasp", "waiting")
    (place / "NEW.md").write_text("not committed\n")
    den.rook("stop", "wasp")
    _, wasp = den.rook.json("compare", task).data["attempts"]
    assert (wasp["commits"], wasp["files"], wasp["uncommitted"], wasp["gates"]) == (0, 0, 1, [])
    shown = den.rook("compare", task).out.decode()
    assert "0 (+0 -0), 1 uncommitted" in shown
    assert "* the branch of this agent is the task's" in shown
    kept = den.rook("compare", task, "--keep", "bee").out.decode()
    branch = f"rook/bee/{handle(task)}"
    assert f"The task's branch is now {branch}; next: `rook review show {handle(task)}`." in kept


def test_what_cannot_be_kept_is_refused(repo: Path) -> None:
    den = Den(repo)
    task = den.task("Work", [{"wait": "mail"}])
    assert den.rook.json("compare", task).data["attempts"] == []
    assert den.rook.json("compare", task, "--keep", "bee").error["code"] == "invalid_input"
    den.sling(task, "--name", "bee")
    assert den.rook.json("compare", task, "--keep", "bee").error["code"] == "invalid_state"  # no commit of its own
    den.rook("stop", "bee")
    attempt(den, task, "wasp", "three\n")
    den.sling(task, "--name", "ant")
    assert den.rook.json("compare", task, "--keep", "wasp").error["code"] == "task_taken"
    assert den.rook.json("task", "get", task).data["state"] == "IN_PROGRESS"


def test_the_hint_of_a_task_in_review_leads_to_a_second_attempt_beside_it(repo: Path) -> None:
    den = Den(repo)
    task = den.task("Work", [{"wait": "mail"}])
    attempt(den, task, "bee", "one\n")
    den.rook("compare", task, "--keep", "bee")
    hint = den.rook.json("sling", task).error["hint"].partition("second attempt")[2]
    commands = re.findall("`rook ([^`]+)`", hint)
    assert len(commands) == 3
    for command in commands:
        assert den.rook(*command.split()).status == 0
    (first, second) = den.rook.json("compare", task).data["attempts"]
    assert (first["agent"], first["commits"], second["is_current"]) == ("bee", 1, True)
    den.rook("stop", second["agent"])
    assert den.rook.json("compare", task, "--keep", "bee").data["state"] == "PENDING_REVIEW"
