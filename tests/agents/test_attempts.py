"""A new attempt at a task is told about the earlier ones, and can start from their work."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from rookery.base.ids import handle
from support import wait_until

_EDIT = {"edit": {"path": "work.txt", "text": "work\n"}}
_MORE = {"edit": {"path": "more.txt", "text": "more\n"}}
_STOP = ["bee", "--reason", "it hung"]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def stopped(den: Den, *steps: object) -> str:
    """A task at which bee has done these steps before it was stopped."""
    task = den.task("Work", [*steps, {"wait": "mail"}])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    den.rook("stop", *_STOP)
    return task


def instructions(den: Den, session: str) -> str:
    return (den.folder / ".rookery/sessions" / session / "instructions.md").read_text()


@pytest.mark.slow
def test_it_is_shown_the_branch_and_how_to_look_at_it(den: Den) -> None:
    task = stopped(den, _EDIT, {"commit": "Work"}, _MORE)
    slung = den.sling(task, "--name", "wasp")
    section = instructions(den, slung["id"]).split("## Earlier attempts")[1].split("##")[0]
    assert '`bee`, a builder: stopped ("it hung")' in section
    looks = [text for text in section.split("`") if text.startswith("git ") and "cherry" not in text]
    assert len(looks) == 3
    seen = [git(Path(slung["worktree"]), *look.split()[1:]) for look in looks]
    assert "Work" in seen[0]
    assert "+work" in seen[1]
    assert "+more" in seen[2]
    start = den.rook.json("task", "get", task).data["start_commit"]
    assert "work.txt" not in git(den.folder, "ls-tree", "--name-only", start)


@pytest.mark.slow
@pytest.mark.parametrize("cleaned", [False, True])
def test_it_starts_from_the_earlier_branch_with_what_was_not_committed(den: Den, cleaned: bool) -> None:
    task = stopped(den, _EDIT, {"commit": "Work"}, _MORE)
    start = den.agent("bee")["session_id"]
    if cleaned:
        assert den.rook.json("worktree", "clean", "bee").data[0]["rescue"]
    git(den.folder, "commit", "--allow-empty", "-qm", "The base moves")
    slung = den.sling(task, "--name", "wasp", "--from", "bee")
    place = Path(slung["worktree"])
    assert (place / "work.txt").read_text() + (place / "more.txt").read_text() == "work\nmore\n"
    assert git(place, "status", "--porcelain") == ""
    assert git(place, "log", "--format=%s", "main..HEAD").split("\n") == ["What bee had not committed", "Work"]
    assert "what it had not committed" in instructions(den, slung["id"])
    assert slung["base_commit"] == git(den.folder, "merge-base", "main", "HEAD~1")
    assert start != slung["id"]
    den.wait_for("wasp", "waiting")
    assert den.rook("task", "submit", task).status == 0  # the earlier work counts as its own
    assert b"stopped wasp" in den.rook("stop", "wasp").out
    assert den.rook("stop", "wasp").out == b"wasp ended before: stopped\n"
    assert den.rook("merge", "--branch", "wasp").status == 0
    assert git(den.folder, "show", "main:work.txt") == "work"
    assert den.rook.json("task", "get", task).data["state"] == "COMPLETED"


@pytest.mark.slow
def test_what_was_committed_since_is_no_longer_taken_from_a_snapshot(den: Den) -> None:
    task = stopped(den, _EDIT)
    git(den.folder / ".rookery/worktrees/bee", "add", "-A")
    git(den.folder / ".rookery/worktrees/bee", "commit", "-qm", "By hand")
    slung = den.sling(task, "--name", "wasp", "--from", "bee")
    assert git(Path(slung["worktree"]), "log", "--format=%s", "main..HEAD") == "By hand"


@pytest.mark.slow
def test_it_starts_from_the_newest_of_what_was_not_committed(den: Den) -> None:
    wait, newer = {"wait": "mail"}, {"edit": {"path": "work.txt", "text": "newer\n"}}
    task = stopped(den, _EDIT, wait, newer, wait, wait)
    den.rook("worktree", "clean", "bee")
    den.rook("resume", "bee")
    wait_until(lambda: (den.folder / ".rookery/worktrees/bee/work.txt").read_text() == "newer\n")
    den.wait_for("bee", "waiting")
    den.rook("stop", "bee")
    slung = den.sling(task, "--name", "wasp", "--from", "bee")
    assert (Path(slung["worktree"]) / "work.txt").read_text() == "newer\n"


@pytest.mark.slow
def test_what_an_agent_of_that_name_left_at_another_task_is_not_taken_for_its_work(den: Den) -> None:
    first = stopped(den, _EDIT)
    den.rook("worktree", "clean", "bee")
    second = den.task("Second", [_MORE, {"wait": "mail"}])
    den.sling(second, "--name", "bee")
    den.wait_for("bee", "waiting")
    den.rook("stop", *_STOP)
    slung = den.sling(second, "--name", "wasp", "--from", "bee")
    assert {path.name for path in Path(slung["worktree"]).glob("*.txt")} == {"more.txt"}
    den.rook("worktree", "clean", "bee")
    rescues = git(den.folder, "for-each-ref", "--format=%(refname)", "--sort=refname", "refs/rookery/rescue").split()
    instructed = instructions(den, den.sling(first, "--name", "hornet")["id"])
    assert rescues[0] in instructed.split("## Earlier attempts")[1]


@pytest.mark.slow
def test_a_sling_from_earlier_work_that_fails_leaves_that_as_it_was(den: Den) -> None:
    task = stopped(den, _EDIT, {"commit": "Work"}, _MORE)
    refs = git(den.folder, "for-each-ref")
    refused = den.rook.json("sling", task, "--name", "wasp", "--from", "bee", "-c", "provision.setup=exit 7").error
    assert refused["code"] == "provision_failed"
    assert git(den.folder, "for-each-ref") == refs
    assert den.rook.json("task", "get", task).data["branch"] == f"rook/bee/{handle(task)}"
    assert not (den.folder / ".rookery/worktrees/wasp").exists()


@pytest.mark.slow
def test_a_name_whose_branch_has_commits_is_refused_with_what_leads_on(den: Den) -> None:
    task = stopped(den, _EDIT, {"commit": "Work"})
    refused = den.rook.json("sling", task, "--name", "bee").error
    assert (refused["code"], refused["message"]) == ("name_taken", f"rook/bee/{handle(task)} already has commits")
    assert "`rook resume bee`" in refused["hint"]
    den.rook("worktree", "clean", "bee")
    den.sling(den.task("Other", [{"wait": "mail"}]), "--name", "bee")
    den.rook("stop", "bee", "--clean")
    assert f"--base rook/bee/{handle(task)}" in den.rook.json("sling", task, "--name", "bee").error["hint"]
    assert den.rook.json("task", "get", task).data["branch"] == f"rook/bee/{handle(task)}"


@pytest.mark.slow
def test_what_cannot_be_started_from_is_refused(den: Den) -> None:
    task = stopped(den, _EDIT)
    other = den.task("Other", [DONE])
    for words, code in [
        ((task, "--from", "wasp"), "no_such_agent"),
        ((other, "--from", "bee"), "invalid_state"),
        ((task, other, "--from", "bee"), "invalid_input"),
        ((task, "--from", "bee", "--base", "main"), "invalid_input"),
        (("--next", "--from", "bee"), "invalid_input"),
        (("Some new work", "--from", "bee"), "invalid_id"),
    ]:
        assert den.rook.json("sling", *words).error["code"] == code, words
    den.sling(task, "--name", "ant")
    assert den.rook.json("sling", task, "--from", "ant").error["code"] == "invalid_state"
