"""An agent that is paused or taken over begins no turn, and goes on with what it knew when it is handed back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from den import DONE, Den
from support import wait_until

_WAIT = {"wait": "mail"}


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def waiting(den: Den, *after: Any) -> Path:
    """bee, which waits after its first turn; its worktree."""
    place = den.sling(den.task("Work", [_WAIT, *after]), "--name", "bee")["worktree"]
    den.wait_for("bee", "waiting")
    return Path(place)


def turns(den: Den) -> int:
    db = den.rook.open()
    try:
        return int(db.value("SELECT count(*) FROM turns"))
    finally:
        db.close()


@pytest.mark.slow
def test_a_paused_agent_begins_no_turn_and_its_mail_waits(den: Den) -> None:
    waiting(den, DONE)
    assert den.rook.json("pause", "bee").data["hold"]["kind"] == "paused"
    den.rook("mail", "send", "bee", "--subject", "Go", "--body", "Go")
    den.rook("loop", "run")
    assert (den.agent("bee")["state"], turns(den)) == ("waiting", 1)
    assert "paused" in den.rook("status").out.decode()
    assert den.rook.json("pause", "bee").error["code"] == "invalid_state"
    den.rook("handback", "bee", "Well done so far.")
    den.wait_for("bee", "completed")
    assert turns(den) == 2
    (message,) = den.mail(subject="human hands back to you")
    assert "Well done so far." in message["body"]
    assert den.rook.json("handback", "bee").error["code"] == "invalid_state"


@pytest.mark.slow
def test_one_that_was_slung_just_now_waits_too(den: Den) -> None:
    with den.without_loop():
        den.sling(den.task("Work", [DONE]), "--name", "bee")
        den.rook("pause", "bee")
    den.rook("loop", "run")
    assert turns(den) == 0
    den.rook("handback", "bee")
    den.wait_for("bee", "completed")


@pytest.mark.slow
def test_a_running_turn_goes_on_to_its_end_unless_now_is_said(den: Den) -> None:
    go = den.folder / "go"
    den.sling(den.task("Work", [{"run": f"while ! test -e {go}; do sleep 0.02; done"}, _WAIT]), "--name", "bee")
    den.runner("bee")
    assert den.rook.json("pause", "bee").data["turn"] == 1
    go.touch()
    den.wait_for("bee", "waiting")
    den.rook("handback", "bee")
    den.sling(den.task("Hang", [{"hang": True}]), "--name", "wasp")
    den.runner("wasp")
    assert den.rook.json("pause", "wasp").data["turn"] == 1
    assert b"still running" not in den.rook("pause", "wasp", "--now").out
    den.wait_for("wasp", "waiting")
    assert den.rook("stop", "--all", "--yes").status == 0
    den.assert_no_process()


@pytest.mark.slow
def test_the_agent_hears_of_commits_and_files_that_changed_while_a_person_worked(den: Den) -> None:
    place = waiting(den, DONE)
    (place / "before.txt").write_text("the agent's own\n")
    held = den.rook.json("takeover", "bee").data
    assert (held["worktree"], held["hold"]["kind"]) == (str(place), "taken over")
    assert den.rook.json("takeover", "bee").data["hold"] == held["hold"]
    (place / "mine.txt").write_text("mine\n")
    git(place, "add", "mine.txt")
    git(place, "commit", "-qm", "By a person")
    (place / "left.txt").write_text("left\n")
    den.rook("loop", "run")
    back = den.rook.json("handback", "bee").data
    assert [commit.split(" ", 1)[1] for commit in back["commits"]] == ["By a person"]
    assert back["files"] == ["left.txt", "mine.txt"]
    assert back["hold"] is None
    (message,) = den.mail(subject="human hands back to you")
    assert all(text in message["body"] for text in ("By a person", "mine.txt", "left.txt"))
    assert "before.txt" not in message["body"]
    assert (place / "left.txt").exists()
    den.wait_for("bee", "completed")


@pytest.mark.slow
def test_taking_over_interrupts_the_turn_first(den: Den) -> None:
    den.sling(den.task("Hang", [{"hang": True}]), "--name", "bee")
    den.runner("bee")
    held = den.rook.json("takeover", "bee").data
    assert (held["turn"], den.agent("bee")["state"]) == (None, "waiting")
    assert held["hold"]["snapshot"]
    assert den.rook.json("stop", "bee").data["ended"][0]["hold"] is None
    den.assert_no_process()


@pytest.mark.slow
def test_one_that_had_handed_in_already_is_resumed_instead(den: Den) -> None:
    den.sling(den.task("Work", [{"edit": {"path": "a.txt", "text": "a"}}, {"commit": "A"}, DONE, {"hang": True}]))
    wait_until(lambda: den.mail(type="worker_done"), 30)
    refused = den.rook.json("takeover", "builder-1").error
    assert "has ended meanwhile: completed" in refused["message"]
    assert "`rook resume builder-1" in refused["hint"]


@pytest.mark.slow
def test_killed_in_between_the_same_command_goes_on(den: Den) -> None:
    place = waiting(den, DONE)
    den.killed_alone("held", "takeover", "bee")
    den.rook("mail", "send", "bee", "--subject", "Go", "--body", "Go")
    den.rook("loop", "run")
    assert turns(den) == 1
    assert den.rook.json("takeover", "bee").data["hold"]["snapshot"]
    (place / "mine.txt").write_text("mine\n")
    den.killed_alone("changes read", "handback", "bee")
    assert den.agent("bee")["hold"] is not None
    assert den.rook.json("handback", "bee").data["files"] == ["mine.txt"]
    den.wait_for("bee", "completed")


@pytest.mark.slow
def test_what_cannot_be_handed_back_is_refused_and_stays(den: Den) -> None:
    place = waiting(den)
    den.rook("takeover", "bee")
    git(place, "checkout", "-q", "--detach")
    refused = den.rook.json("handback", "bee").error
    assert refused["code"] == "wrong_worktree"
    assert f"`git -C {place} switch rook/bee/" in refused["hint"]
    assert den.agent("bee")["hold"]["kind"] == "taken over"
    assert den.rook.json("pause", "bee").error["code"] == "invalid_state"
    for verb in ("pause", "takeover", "handback"):
        assert den.rook.json(verb, "wasp").error["code"] == "no_such_agent"
    shutil.rmtree(place)
    assert "`rook resume bee`" in den.rook.json("handback", "bee").error["hint"]
    den.rook("stop", "bee")
    assert den.rook.json("takeover", "bee").error["code"] == "invalid_state"
    assert den.rook.json("resume", "bee").data["is_recreated"]
