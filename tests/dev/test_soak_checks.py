"""Every check of a soak complains of what it is there for, and of nothing where all is well."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from dataclasses import replace

import pytest
from dev.soak import processes
from dev.soak.checks import checkout, events, leftovers, mail
from dev.soak.checks.model import gather
from dev.soak.processes import Process
from dev.soak.repository import BASE, add_users_files
from soaked import Place, call, texts
from soaked import place as place

from conftest import git


def tell(place: Place, turn: str, *ids: str, state: str = "done", folded: bool = False) -> None:
    """A turn that showed these messages, by the agent's own record."""
    place.add("turns", id=turn, session_id="ses_1", number=len(place.lines), state=state)
    place.lines.append({"what": "turn", "turn": turn, "ids": list(ids), "folded": folded})


def test_a_message_that_one_turn_showed_is_fine(place: Place) -> None:
    tell(place, "trn_1", "msg_1", state="lost")
    tell(place, "trn_2", "msg_1")
    place.add("messages", id="msg_1", recipient="bee", turn_id="trn_2", read_at="now")
    assert not list(mail.check_delivery(place.db, place.ledger))


def test_a_message_that_was_told_twice_is_found(place: Place) -> None:
    tell(place, "trn_1", "msg_1")
    tell(place, "trn_2", "msg_1", state="interrupted")
    place.add("messages", id="msg_1", type="status", recipient="bee", turn_id="trn_2", read_at="now")
    assert texts(mail.check_delivery(place.db, place.ledger)) == [
        "status msg_1 to bee was told in 2 turns that ended well: ['trn_1', 'trn_2']"
    ]


def test_a_message_that_was_told_and_stays_unread_is_found(place: Place) -> None:
    tell(place, "trn_1", "msg_1")
    place.add("messages", id="msg_1", type="status", recipient="bee")
    assert texts(mail.check_delivery(place.db, place.ledger)) == [
        "status msg_1 to bee was told in trn_1, which ended well, and is still unread"
    ]


def test_a_message_that_is_read_and_was_never_told_is_found(place: Place) -> None:
    tell(place, "trn_1", "msg_2")
    place.add("messages", id="msg_1", type="status", recipient="bee", turn_id="trn_1", read_at="now")
    assert texts(mail.check_delivery(place.db, place.ledger)) == [
        "status msg_1 to bee is read by trn_1, which was never told it"
    ]


@pytest.mark.parametrize("reason", ["unnoted", "folded", "cut off"])
def test_a_turn_whose_record_is_not_whole_proves_nothing(place: Place, reason: str) -> None:
    tell(place, "trn_1", folded=reason == "folded")
    if reason == "unnoted":
        place.lines.clear()
    if reason == "cut off":
        place.lines.append({"what": "look", "turn": "trn_1", "number": 5})
    place.add("messages", id="msg_1", recipient="bee", turn_id="trn_1", read_at="now")
    assert not list(mail.check_delivery(place.db, place.ledger))


def test_mail_that_a_turn_looked_for_itself_counts(place: Place) -> None:
    tell(place, "trn_1")
    place.lines.append({"what": "look", "turn": "trn_1", "number": 5})
    place.lines.append({"what": "looked", "turn": "trn_1", "number": 5, "ids": ["msg_1"]})
    place.add("messages", id="msg_1", recipient="bee", turn_id="trn_1", read_at="now")
    assert not list(mail.check_delivery(place.db, place.ledger))


def test_a_record_that_lacks_most_turns_is_found(place: Place) -> None:
    tell(place, "trn_1")
    assert not list(mail.check_record(place.db, place.ledger))
    for number in (2, 3):
        place.add("turns", id=f"trn_{number}", session_id="ses_1", number=number, state="done")
    assert texts(mail.check_record(place.db, place.ledger)) == [
        "the ledger knows of 1 of 3 turns: too few to judge mail by"
    ]


def test_a_message_that_a_lost_turn_has_read_is_found(place: Place) -> None:
    tell(place, "trn_1", "msg_1", state="lost")
    place.add("messages", id="msg_1", type="status", recipient="bee", turn_id="trn_1", read_at="now")
    assert texts(mail.check_delivery(place.db, place.ledger)) == ["status msg_1 to bee is read by trn_1, which is lost"]


def test_a_message_that_rook_reported_as_sent_must_be_there_once(place: Place) -> None:
    place.lines += [{"what": "send", "nonce": name} for name in ("a.1", "a.2", "a.3")]
    place.lines += [
        {"what": "sent", "nonce": "a.1", "ids": ["msg_1"]},
        {"what": "sent", "nonce": "a.2", "ids": ["msg_2"]},
    ]
    place.add("messages", id="msg_1", body="nonce a.1")
    place.add("messages", id="msg_2", body="nonce a.2")
    assert not list(mail.check_sent(place.db, place.ledger))
    place.db.execute("DELETE FROM messages WHERE id = 'msg_2'")
    for message in ("msg_3", "msg_4"):
        place.add("messages", id=message, body="nonce a.3")
    place.add("messages", id="msg_5", body="nonce a.5")
    assert texts(mail.check_sent(place.db, place.ledger)) == [
        "message a.2 was sent as ['msg_2'], and is there as []",
        "message a.3 was sent once, and is there 2 times: ['msg_3', 'msg_4']",
        "message ['msg_5'] with number a.5 is there, and no agent sent it",
    ]


def test_mail_that_waits_for_a_living_agent_is_found(place: Place) -> None:
    place.add("sessions", id="ses_1", agent="bee", state="waiting")
    place.add("sessions", id="ses_2", agent="ant", state="ended")
    for number, agent in enumerate(("bee", "ant")):
        place.add("messages", id=f"msg_{number}", type="status", recipient=agent)
    assert texts(mail.check_unread(place.db)) == ["status msg_0 to bee is unread, and bee is waiting"]


def test_events_of_mail_that_do_not_fit_are_found(place: Place) -> None:
    for number in (1, 2, 3):
        place.add("messages", id=f"msg_{number}", read_at=None if number == 3 else "now")
    place.event("mail.sent", "msg_1")
    place.event("mail.sent", "msg_3")
    place.event("mail.read", "bee", ids=["msg_1", "msg_2"])
    place.event("mail.read", "bee", ids=["msg_1"])
    assert texts(mail.check_mail_events(place.db)) == [
        "msg_1 has 2 events that say it was read, read_at is now",
        "msg_2 has 0 events that say it was sent",
    ]


def test_a_gap_and_a_double_in_the_events_are_found(place: Place) -> None:
    for seq, name in ((1, "evt_1"), (2, "evt_2"), (4, "evt_2")):
        place.add("events", seq=seq, id=name)
    assert texts(events.check_events(place.db)) == [
        "event 3 is missing: 4 follows 2",
        "event evt_2 is there twice: 2 and 4",
    ]


def test_a_state_without_its_event_is_found(place: Place) -> None:
    place.add("sessions", id="ses_1", agent="bee", state="ended", outcome="crashed", step="ready")
    place.add("merges", id="mrg_1", state="landed", candidate="abc")
    assert texts(events.check_states(place.db)) == [
        "session ses_1 is there, and no event tells of it",
        "merge mrg_1 is there, and no event tells of it",
    ]
    place.event("agent.reserved", "bee", session={"id": "ses_1", "step": "reserved", "outcome": None})
    place.event("agent.ready", "bee", session_id="ses_1", set={"step": "ready"})
    place.event("merge.queued", "mrg_1", merge={"id": "mrg_1", "state": "queued"})
    place.event("merge.landed", "mrg_1", set={"state": "landed", "candidate": "abc"})
    assert texts(events.check_states(place.db)) == ["session ses_1 has outcome crashed, and by its events None"]
    place.event("agent.ended", "bee", session_id="ses_1", set={"outcome": "crashed"})
    assert not list(events.check_states(place.db))


def test_what_is_told_twice_is_found(place: Place) -> None:
    for session in ("ses_1", "ses_2"):
        place.event("agent.ended", "bee", session_id=session)
    place.event("merge.landed", "mrg_1")
    assert not list(events.check_once(place.db))
    place.event("agent.ended", "bee", session_id="ses_2")
    place.event("merge.landed", "mrg_1")
    assert texts(events.check_once(place.db)) == [
        "agent.ended of ses_2 is told more than once: events 2,4",
        "merge.landed of mrg_1 is told more than once: events 3,5",
    ]


def test_what_the_doctor_finds_in_the_project_counts() -> None:
    checks = [
        {"category": "merge", "name": "landings", "status": "warning", "message": "cut off"},
        {"category": "tasks", "name": "history", "status": "ok", "message": ""},
        {"category": "install", "name": "bytecode", "status": "warning", "message": "not compiled"},
    ]
    assert texts(events.check_doctor({"checks": checks})) == ["merge/landings: cut off"]


def test_calls_that_end_as_they_never_should_are_found() -> None:
    calls = [
        call("status"),
        call("sling", "x", status=1),
        call("sling", "y", status=-signal.SIGKILL),
        call("merge", "run", status=3, err="our bug"),
        call("mail", "list", status=1, err="Traceback (most recent call last):"),
        call("stop", "z", status=-signal.SIGKILL, is_hung=True),
    ]
    line = {"what": "call", "agent": "bee", "words": ["mail", "send"], "status": 3, "err": "our bug"}
    killed = line | {"status": -9}
    assert texts(events.check_calls(calls, gather([line, killed]))) == [
        "rook merge run ended with 3: our bug",
        "rook mail list ended with 1: Traceback (most recent call last):",
        "rook stop z did not end",
        "in a turn of bee: mail send ended with 3: our bug",
    ]


def test_a_process_that_is_left_is_found() -> None:
    alive = Process(7, 1, 1, "S", processes.RUNNER, "python runner", "")
    assert texts(leftovers.check_processes([alive, replace(alive, state="Z")])) == [
        "process 7 (runner) is alive: python runner"
    ]


def test_locks_are_found(place: Place) -> None:
    run = place.repo / ".rookery" / "run"
    run.mkdir(parents=True)
    (run / "daemon.lock").touch()
    assert not list(leftovers.check_locks(place.repo))
    (place.repo / ".git" / "refs" / "heads" / "main.lock").touch()
    with (run / "daemon.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert texts(leftovers.check_locks(place.repo)) == [
            "lock file .git/refs/heads/main.lock",
            "lock of .rookery/run/daemon.lock is held",
        ]


def test_folders_that_are_left_are_found(place: Place) -> None:
    assert not list(leftovers.check_folders(place.repo, place.site.temporary))
    (place.repo / ".rookery" / "scratch" / "mrg_1").mkdir(parents=True)
    (place.site.temporary / "tmp123").touch()
    assert texts(leftovers.check_folders(place.repo, place.site.temporary)) == [
        "scratch folder .rookery/scratch/mrg_1",
        f"temporary file {place.site.temporary}/tmp123",
    ]


def test_worktrees_that_rook_does_not_list_are_found(place: Place) -> None:
    known, forgotten, removed = (place.repo / ".rookery" / "worktrees" / name for name in ("bee", "ant", "fly"))
    for path in (known, forgotten, removed):
        git(place.repo, "worktree", "add", "-q", "--detach", str(path))
    listed = [{"path": str(known)}, {"path": str(removed)}]
    complaints = texts(leftovers.check_worktrees(place.repo, [*listed, {"path": str(forgotten)}]))
    assert complaints == []
    (removed / ".git").unlink()
    for entry in list(removed.iterdir()):
        entry.unlink() if entry.is_file() else subprocess.run(["rm", "-r", str(entry)], check=True)
    removed.rmdir()
    assert texts(leftovers.check_worktrees(place.repo, listed)) == [
        f"worktree {forgotten} is on the disk, and rook worktree list does not know it",
        f"worktree {forgotten} is known to git, and rook worktree list does not know it",
        f"worktree {removed} is known to git, and is not there",
    ]


def test_an_untouched_checkout_is_fine(place: Place) -> None:
    files = add_users_files(place.site)
    assert not list(checkout.check_users_files(place.repo, files))
    assert not list(checkout.check_status(place.repo, files, BASE))
    assert not list(checkout.check_repository(place.repo))


def test_changes_of_the_users_files_are_found(place: Place) -> None:
    files = add_users_files(place.site)
    (place.repo / "notes.txt").write_text("other")
    os.utime(place.repo / "settings.ini", ns=(1, 1))
    (place.repo / "prepared.txt").unlink()
    assert texts(checkout.check_users_files(place.repo, files)) == [
        "the user's file notes.txt has other bytes",
        "the user's file settings.ini was written again (its time has changed)",
        "the user's file prepared.txt is gone",
    ]


def test_a_checkout_in_disorder_is_found(place: Place) -> None:
    files = add_users_files(place.site)
    (place.repo / "check.py").unlink()
    git(place.repo, "reset", "-q", "prepared.txt")
    git(place.repo, "switch", "-q", "-c", "elsewhere")
    assert texts(checkout.check_status(place.repo, files, BASE)) == [
        "HEAD is on elsewhere, and was on main",
        "git status shows ' D check.py', which is not the user's",
        "git status shows '?? prepared.txt', which is not the user's",
        "git status does not show 'A  prepared.txt', the user's own",
    ]


def test_a_missing_object_is_found(place: Place) -> None:
    blob = git(place.repo, "rev-parse", "HEAD:check.py")
    (place.repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (complaint,) = texts(checkout.check_repository(place.repo))
    assert f"missing blob {blob}" in complaint
