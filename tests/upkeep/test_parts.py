"""`rook clean`: only what was named, nothing of a living agent, and nothing that has not landed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from conftest import Rook, git
from places import Place, make_place
from rookery.base.ids import MESSAGE, new_id
from rookery.config import layout
from rookery.events.telemetry import Telemetry


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


@pytest.fixture
def rook(place: Place) -> Rook:
    return Rook(place.root)


def parts(rook: Rook, *words: str) -> dict[str, Any]:
    return {part["name"]: part for part in rook.json("clean", *words).data["parts"]}


def test_without_a_part_nothing_is_removed(place: Place, rook: Rook) -> None:
    place.add("ann")
    db = rook.open()
    before = db.all("SELECT id, state, worktree FROM sessions")
    assert parts(rook)["worktrees"]["count"] == 1
    assert "Nothing was removed" in rook("clean").out.decode()
    assert parts(rook, "--all", "--dry-run")["worktrees"]["count"] == 1
    assert db.all("SELECT id, state, worktree FROM sessions") == before
    assert (place.root / ".rookery" / "worktrees" / "ann").exists()
    db.close()


def test_without_a_terminal_it_needs_yes(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    ran = rook("clean", "--worktrees")
    assert (ran.status, "rook clean --worktrees --yes" in ran.err.decode()) == (2, True)
    assert ann.path.exists()


def test_sessions_go_only_after_their_worktree_and_branch(place: Place, rook: Rook) -> None:
    ann, bob = place.add("ann"), place.add("bob")
    bob.put("work")
    git(bob.path, "add", ".")
    git(bob.path, "commit", "-qm", "Work")
    for agent in (ann, bob):
        agent.folder.mkdir(parents=True, exist_ok=True)
        (agent.folder / layout.SESSION_TOKEN).write_text("secret")
        agent.add_turn(1)
        db = rook.open()
        db.execute("UPDATE sessions SET swept_at = ended_at")
        db.close()
    assert parts(rook, "--sessions", "--dry-run")["sessions"]["count"] == 0
    removed = parts(rook, "--all", "--yes")
    assert (removed["worktrees"]["count"], removed["sessions"]["count"], removed["sessions"]["kept"]) == (2, 1, 1)
    assert not ann.folder.exists()
    assert bob.folder.exists()
    assert [agent["agent"] for agent in rook.json("status", "--all").data["ended"]] == ["bob"]
    assert git(place.root, "branch", "--list", "rook/*").strip() == bob.branch
    assert rook("doctor", "--category", "database").status == 0


def test_nothing_of_a_living_agent_goes(place: Place, rook: Rook) -> None:
    ann = place.add("ann", state="waiting")
    ann.folder.mkdir(parents=True, exist_ok=True)
    (ann.folder / layout.SESSION_LOG).write_text("log")
    message(rook, "ann", "human")
    with_telemetry(place, ann.session.id)
    removed = parts(rook, "--all", "--unread", "--dry-run")
    assert {name: part["count"] for name, part in removed.items() if part["count"]} == {}
    assert removed["mail"]["kept"] == 1
    rook("clean", "--all", "--unread", "--yes")
    assert ann.path.exists()
    assert (ann.folder / layout.SESSION_LOG).exists()


def test_mail_that_waits_for_an_answer_stays(rook: Rook) -> None:
    message(rook, "ann", "human")
    message(rook, "ann", "human", read=False)
    asked = message(rook, "ann", "human", type="question")
    answered = message(rook, "ann", "human", type="question")
    message(rook, "human", "ann", thread=answered)
    assert parts(rook, "--mail", "--yes")["mail"]["count"] == 3
    left = {row["id"] for row in rook.json("mail", "list").data}
    assert asked in left
    assert len(left) == 2
    assert parts(rook, "--mail", "--unread", "--yes")["mail"]["count"] == 2


def test_an_answer_stays_with_the_question_that_no_one_has_marked_read(rook: Rook) -> None:
    asked = message(rook, "ann", "human", type="question", read=False)
    answer = message(rook, "human", "ann", thread=asked)
    back = message(rook, "ann", "human", thread=asked, type="question")
    last = message(rook, "human", "ann", thread=asked)
    assert rook.json("mail", "list", "--unanswered").data == []
    assert parts(rook, "--mail", "--yes")["mail"]["count"] == 0
    assert rook("mail", "purge", "--older-than", "1s").out == b"deleted 0 messages\n"
    assert {row["id"] for row in rook.json("mail", "list").data} == {asked, answer, back, last}
    assert rook.json("mail", "list", "--unanswered").data == []


def test_only_what_is_old_enough(place: Place, rook: Rook) -> None:
    logs = place.root / ".rookery" / "gates" / "abc"
    logs.mkdir(parents=True)
    (logs / "unit.log").write_text("output")
    (place.root / ".rookery" / "logs").mkdir(exist_ok=True)
    (place.root / ".rookery" / "logs" / "daemon.log").write_text("in use")
    assert parts(rook, "--logs", "--older-than", "1d", "--yes")["logs"]["count"] == 0
    assert parts(rook, "--logs", "--yes")["logs"]["size"] == len("output")
    assert not (logs / "unit.log").exists()
    assert (place.root / ".rookery" / "logs" / "daemon.log").exists()


def test_metrics_and_specs(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    with_telemetry(place, ann.session.id)
    kept = rook.json("task", "create", "open").data["id"]
    done = rook.json("task", "create", "over").data["id"]
    rook("task", "cancel", done)
    for task in (kept, done):
        rook("spec", "write", task, "--body", "text")
    own = place.root / ".rookery" / "specs" / "plan.md"
    own.write_text("a plan of mine\n")
    removed = parts(rook, "--metrics", "--specs", "--yes")
    assert (removed["metrics"]["count"], removed["specs"]["count"], removed["specs"]["kept"]) == (1, 1, 1)
    assert rook("spec", "show", kept).status == 0
    assert rook("spec", "show", done).status == 1
    assert own.exists()


@pytest.mark.slow
def test_a_killed_cleaning_is_finished_by_the_next(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    ann.folder.mkdir(parents=True, exist_ok=True)
    (ann.folder / layout.SESSION_LOG).write_text("log")
    db = rook.open()
    db.execute("UPDATE sessions SET swept_at = ended_at")
    killed = rook("clean", "--all", "--yes", env={"ROOKERY_TEST_KILL": "sessions deleted"})
    assert killed.status == -signal.SIGKILL
    assert db.value("SELECT count(*) FROM sessions") == 0
    assert ann.folder.exists()
    rook("clean", "--all", "--yes")
    assert not ann.folder.exists()
    db.close()


def message(rook: Rook, sender: str, to: str, *, type: str = "status", read: bool = True, thread: str = "") -> str:
    """A message as it stands in the table; its id."""
    message_id = new_id(MESSAGE)
    at = "2026-01-01T00:00:00.000Z"
    db = rook.open()
    db.execute(
        "INSERT INTO messages (id, thread_id, sender, recipient, type, priority, subject, body, created_at, read_at) "
        "VALUES (?, ?, ?, ?, ?, 'normal', 'subject', '', ?, ?)",
        (message_id, thread or message_id, sender, to, type, at, at if read else None),
    )
    db.close()
    return message_id


def with_telemetry(place: Place, session_id: str) -> None:
    telemetry = Telemetry(str(place.root / ".rookery" / layout.TELEMETRY))
    telemetry.add(
        at="2026-01-01T00:00:00.000Z", agent="ann", session_id=session_id, turn_id=None, kind="tool", data={"a": 1}
    )
    telemetry.close()


def test_what_is_saved_of_a_worktree_is_named_and_what_is_not_too(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    ann.put(".gitignore", "*.log\n")
    ann.put("big.log")
    ann.put("loose.txt", "precious\n")
    (note,) = parts(rook, "--worktrees", "--dry-run")["worktrees"]["notes"]
    assert note == "ann: 1 ignored file will not be saved; `rook worktree clean ann --ignored` saves them"
    out = rook("clean", "--worktrees", "--yes").out.decode()
    (ref,) = git(place.root, "for-each-ref", "--format=%(refname)", "refs/rookery/rescue").split()
    assert git(place.root, "show", f"{ref}:loose.txt") == "precious"
    assert f"git branch rescued-ann {ref}" in " ".join(out.split())
