"""An interrupt ends just the turn that was meant: the agent goes on, and its mail is kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from den import DONE, Den
from rookery.processes.proctree import send
from rookery.terminal.tmux import Tmux, socket_path
from support import wait_until


@pytest.fixture
def den(repo: Path) -> Iterator[Den]:
    den = Den(repo)
    yield den
    for agent in den.rook.json("status").data["agents"]:
        den.rook("stop", agent["agent"])
    Tmux(socket_path(str(repo))).kill_server()


BUSY: list[Any] = [{"run": "[ -e busy ] || { touch busy; exec sleep 300; }"}, DONE]


def start_busy(den: Den, *more: str, steps: list[Any] = BUSY) -> Path:
    """An agent in the middle of a long command; its worktree."""
    den.sling(den.task("Stay", steps), "--name", "bee", *more)
    tree = den.folder / ".rookery/worktrees/bee"
    wait_until((tree / "busy").exists, 60)
    return tree


def turns(den: Den) -> list[tuple[str, str]]:
    db = den.rook.open()
    rows = db.all("SELECT state, coalesce(last_words, '') FROM turns ORDER BY number")
    db.close()
    return [(state, words) for state, words in rows]


def events(den: Den, kind: str) -> list[dict[str, Any]]:
    lines = den.rook.json("events", "--type", kind).out.splitlines()
    return [json.loads(line)["data"]["data"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_an_interrupted_agent_waits_and_goes_on_when_it_gets_mail(den: Den, mode: str) -> None:
    start_busy(den, mode)
    assert den.rook.json("interrupt", "bee").data == {"agent": "bee", "turn": 1, "by": "human"}
    den.wait_for("bee", "waiting")
    assert turns(den) == [("interrupted", "interrupted by human")]
    assert [event["interrupted_by"] for event in events(den, "turn.ended")] == ["human"]
    db = den.rook.open()
    assert db.value("SELECT count(*) FROM turns WHERE snapshot IS NOT NULL") == 1
    db.close()
    den.rook.json("nudge", "bee", "Go on.")
    den.wait_for("bee", "completed")
    assert turns(den)[1][0] == "done"
    den.assert_no_process()


@pytest.mark.slow
def test_mail_that_came_with_an_interrupted_turn_is_read_once(den: Den) -> None:
    steps: list[Any] = [{"wait": "mail"}, *BUSY]
    den.sling(den.task("Stay", steps), "--name", "bee")
    den.wait_for("bee", "waiting")
    den.rook.json("mail", "send", "bee", "--subject", "Hello", "--body", "Begin")
    wait_until((den.folder / ".rookery/worktrees/bee/busy").exists, 60)
    den.rook.json("interrupt", "bee")
    wait_until(lambda: turns(den)[-1][0] == "interrupted", 60)
    den.wait_for("bee", "waiting")
    (message,) = den.mail(to="bee")
    assert message["read_at"]
    assert len(turns(den)) == 2


def test_there_must_be_a_turn_and_an_agent(den: Den) -> None:
    assert den.rook.json("interrupt", "stranger").error["code"] == "no_such_agent"
    den.sling(den.task("Wait", [{"wait": "mail"}]), "--name", "bee")
    den.wait_for("bee", "waiting")
    refused = den.rook.json("interrupt", "bee").error
    assert refused["code"] == "invalid_state"
    assert "rook nudge bee" in refused["hint"]
    den.rook("stop", "bee")
    assert den.rook.json("interrupt", "bee").error["code"] == "invalid_state"


def test_a_signal_without_a_request_for_this_turn_does_nothing(den: Den) -> None:
    tree = start_busy(den, steps=[{"run": "touch busy; while [ ! -e go ]; do sleep 0.05; done"}, DONE])
    db = den.rook.open()
    session = db.value("SELECT id FROM sessions")
    db.close()
    stale = den.folder / ".rookery/sessions" / session / "interrupt.json"
    for text in (None, "{", json.dumps({"turn_id": "trn_of_yesterday", "by": "human"})):
        if text is not None:
            stale.write_text(text)
        assert send(den.runner("bee"), signal.SIGUSR1)
    os.close(os.open(tree / "go", os.O_CREAT))
    den.wait_for("bee", "completed")
    assert [state for state, _ in turns(den)] == ["done"]


@pytest.mark.slow
def test_an_interrupt_of_a_turn_whose_runner_was_killed_is_refused(den: Den) -> None:
    start_busy(den)
    with den.without_loop():
        send(den.runner("bee"), signal.SIGKILL)
        refused = den.rook.json("interrupt", "bee").error
        assert "no process runs" in refused["message"]
    den.rook("loop", "run")
    den.wait_for("bee", "completed")
    assert [state for state, _ in turns(den)] == ["lost", "done"]


@pytest.mark.slow
def test_an_agent_may_interrupt_only_if_its_role_allows(den: Den) -> None:
    start_busy(den, steps=[{"rook": ["interrupt", "bee"]}, {"run": "touch busy"}, {"wait": "mail"}])
    den.wait_for("bee", "waiting")
    assert turns(den) == [("done", "")]
    (log,) = den.folder.glob(".rookery/sessions/*/events.ndjson")
    assert "not_permitted" in log.read_text()
