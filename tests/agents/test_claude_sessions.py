"""Whole sessions of agents on the real Claude Code, headless and in tmux, against a scripted model."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dev.model_server import ModelServer

from claude import model as model
from claude import settings_for
from conftest import git
from den import DONE, Den
from rookery.processes.proctree import send
from rookery.terminal.tmux import Tmux, socket_path
from support import wait_until

pytestmark = pytest.mark.slow


class ClaudeDen(Den):
    """A project whose agents run on Claude Code."""

    def __init__(self, repo: Path, server: ModelServer) -> None:
        super().__init__(repo)
        self.model = server
        settings = settings_for(server)
        config = {
            "agents": {"runtime": "claude", "stop_grace": "1s"},
            "claude": {"program": settings["program"], "env": settings["env"], "share_login": False},
            "provision": {"ports": 0},
        }
        (repo / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(config))

    def row(self, name: str) -> dict[str, Any]:
        """The session as it is stored."""
        db = self.rook.open()
        columns = ("id", "runtime_session")
        session = db.one(f"SELECT {', '.join(columns)} FROM sessions WHERE agent = ? ORDER BY seq DESC", (name,))
        db.close()
        assert session is not None
        return dict(zip(columns, session, strict=True))

    def turns(self, name: str) -> list[tuple[str, str]]:
        """State and last output of an agent's turns."""
        db = self.rook.open()
        rows = db.all(
            "SELECT t.state, coalesce(t.last_words, '') FROM turns t JOIN sessions s ON s.id = t.session_id "
            "WHERE s.agent = ? ORDER BY t.number",
            (name,),
        )
        db.close()
        return [(state, words) for state, words in rows]

    def spent(self) -> dict[str, int]:
        """The tokens that Rookery knows of, once it has swept up behind agents in terminals."""
        db = self.rook.open()
        wait_until(lambda: not db.value("SELECT 1 FROM sessions WHERE state = 'ended' AND swept_at IS NULL"))
        db.close()
        total = self.rook.json("costs").data["total"]
        return {kind: total[kind] for kind in ("input", "output", "cache_read", "cache_write")}

    def transcript(self) -> str:
        """What the program itself has written down of its conversations."""
        return "".join(path.read_text() for path in self.folder.glob(".rookery/sessions/**/projects/*/*.jsonl"))

    def records(self, name: str, kind: str) -> list[dict[str, Any]]:
        """The records of one kind that `rook logs` shows."""
        lines = self.rook.json("logs", name, "--limit", "0").out.splitlines()
        return [record for record in (json.loads(line)["data"] for line in lines) if record["kind"] == kind]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of one kind."""
        lines = self.rook.json("events", "--type", kind).out.splitlines()
        return [json.loads(line)["data"]["data"] for line in lines]


@pytest.fixture
def den(repo: Path, model: ModelServer) -> Iterator[ClaudeDen]:
    den = ClaudeDen(repo, model)
    yield den
    for agent in den.rook.json("status").data["agents"]:
        den.rook("stop", agent["agent"])
    Tmux(socket_path(str(repo))).kill_server()


STAY = "python3 -c 'import time; time.sleep(300)'"
BUSY = f"touch busy; {STAY}"
ASK: list[Any] = [
    {"say": "I am {agent}, on {task}"},
    {"edit": {"path": "work.txt", "text": "done by {agent}\n"}},
    {"spend": {"input": 1200, "output": 80, "cache_read": 300, "cache_write": 40}},
    {"commit": "Work"},
    {"mail": {"to": "{parent}", "type": "question", "subject": "Well?"}},
    {"until": {"mail_from": "human"}},
    {"say": "It said: {mail.body}"},
    {"reply": "Thanks for '{mail.body}'"},
    DONE,
]


def check_session(den: ClaudeDen, name: str, *more: str) -> None:
    """Read the task, edit, commit, ask, wait, be woken by the answer, go on with the conversation, finish."""
    den.sling(den.task("Ask", ASK), "--name", name, *more)
    den.wait_for(name, "waiting")
    tree = den.folder / ".rookery/worktrees" / name
    assert (tree / "work.txt").read_text() == f"done by {name}\n"
    assert git(tree, "log", "-1", "--format=%s") == "Work"
    assert git(tree, "status", "--porcelain") == ""

    den.rook.json("mail", "reply", den.mail(type="question")[0]["id"], "--body", "it's `fine`")
    ended = den.wait_for(name, "completed")

    assert ended["turns"] == 2
    assert [message["body"] for message in den.mail(type="status") if message["from"] == name] == [
        "Thanks for 'it's `fine`'"
    ]
    assert all(message["read_at"] for message in den.mail(to=name))
    assert den.spent() == den.model.totals()
    assert den.rook.json("costs").data["total"]["dollars"] > 0
    den.assert_no_process()


def test_a_headless_session(den: ClaudeDen) -> None:
    check_session(den, "bee")
    assert [record["data"]["change"] for record in den.records("bee", "file")] == ["created"]
    tools = den.records("bee", "tool")
    assert [tool["data"]["name"] for tool in tools] == ["Write", "Bash", "Bash", "Bash", "Bash"]
    assert all(tool["data"]["ok"] and tool["millis"] >= 0 for tool in tools)
    first, last = den.model.served[0].request, den.model.served[-1].request
    assert len(last["messages"]) > len(first["messages"])
    assert not {tool["name"] for tool in first["tools"]} & {"Task", "Agent", "EnterWorktree", "CronCreate"}


def test_a_session_in_tmux(den: ClaudeDen) -> None:
    check_session(den, "bee", "--tmux")


def test_a_tool_call_that_is_denied_is_recorded_once_and_with_the_reason(den: ClaudeDen) -> None:
    den.sling(den.task("Try", [{"run": "touch x.txt; git push origin HEAD"}, DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    assert not (den.folder / ".rookery/worktrees/bee/x.txt").exists()
    (denied,) = den.records("bee", "denied")
    assert denied["data"]["input"]["command"].endswith("git push origin HEAD")
    assert denied["data"]["reason"]
    for shown in (den.rook("logs", "bee").out.decode(), den.rook("inspect", "bee").out.decode()):
        assert f"{denied['data']['reason']}\n" in shown
        assert f"instead: {denied['data']['hint']}\n" in shown
    assert [record["data"]["ok"] for record in den.records("bee", "tool")] == [False, True]


@pytest.mark.parametrize("where", ["--headless", "--tmux"])
def test_the_model_and_the_person_see_the_reason_first(den: ClaudeDen, where: str) -> None:
    den.sling(den.task("Try", [{"run": "git push origin HEAD"}, DONE]), "--name", "bee", where)
    den.wait_for("bee", "completed")
    (denied,) = den.records("bee", "denied")
    results = [
        block["content"]
        for message in den.model.served[-1].request["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    first = results[0] if isinstance(results[0], str) else results[0][0]["text"]
    assert first == f"rook: {denied['data']['reason']}\n  instead: {denied['data']['hint']}"


def test_the_log_says_how_a_failed_call_of_rook_ended(den: ClaudeDen) -> None:
    den.sling(den.task("Try", [{"run": "rook task get tsk_nothing"}, DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    log = den.rook("logs", "bee").out.decode()
    assert "Exit code 1" in log
    assert "error: no task tsk_nothing" in log
    assert "hint: " in log


def test_a_role_that_writes_nothing_has_no_tool_for_it(den: ClaudeDen) -> None:
    den.sling(den.task("Look", [{"edit": {"path": "x.txt", "text": "x"}}, DONE]), "--name", "bee", "--role", "scout")
    den.wait_for("bee", "completed")
    assert not (den.folder / ".rookery/worktrees/bee/x.txt").exists()
    offered = {tool["name"] for tool in den.model.served[0].request["tools"]}
    assert "Read" in offered
    assert not offered & {"Write", "Edit", "NotebookEdit"}


def test_a_limit_of_the_api_is_recorded_as_such(den: ClaudeDen) -> None:
    task = den.task("Fail")
    text = "```model-script\n- error: 429\n  message: come back later\n```"
    den.rook.json("task", "update", task, "--description", text)
    den.sling(task, "--name", "bee")
    ended = den.wait_for("bee", "crashed")
    assert "come back later" in ended["reason"]
    (error,) = den.records("bee", "error")
    assert (error["data"]["kind"], error["data"]["status"]) == ("limit", 429)
    assert [event["problem"] for event in den.events("turn.ended")] == [{"kind": "limit", "status": 429}]


def test_an_interrupted_turn_leaves_an_agent_that_waits_and_goes_on(den: ClaudeDen) -> None:
    den.sling(den.task("Stay", [{"run": BUSY}, DONE]), "--name", "bee")
    wait_until((den.folder / ".rookery/worktrees/bee/busy").exists, 60)
    assert den.rook.json("interrupt", "bee").data == {"agent": "bee", "turn": 1, "by": "human"}
    den.wait_for("bee", "waiting")
    assert den.turns("bee") == [("interrupted", "interrupted by human")]
    session = den.row("bee")["runtime_session"]
    den.rook.json("nudge", "bee", "Go on.")
    den.wait_for("bee", "completed")
    assert den.row("bee")["runtime_session"] == session
    assert den.turns("bee")[1][0] == "done"


def test_an_interrupt_in_tmux(den: ClaudeDen) -> None:
    den.sling(den.task("Stay", [{"run": BUSY}, DONE]), "--name", "bee", "--tmux")
    wait_until((den.folder / ".rookery/worktrees/bee/busy").exists, 60)
    den.rook.json("interrupt", "bee")
    assert den.wait_for("bee", "waiting")["turns"] == 1
    assert den.turns("bee") == [("interrupted", "interrupted by human")]
    den.rook.json("nudge", "bee", "Go on.")
    den.wait_for("bee", "completed")
    assert den.spent() == den.model.totals()


@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_what_a_turn_used_is_counted_also_if_it_is_stopped(den: ClaudeDen, mode: str) -> None:
    steps = [{"spend": {"input": 40, "output": 20}}, {"run": "true"}, {"run": BUSY}]
    den.sling(den.task("Stay", steps), "--name", "bee", mode)
    wait_until((den.folder / ".rookery/worktrees/bee/busy").exists, 60)
    wait_until(lambda: BUSY in den.transcript(), 60)
    assert den.rook("stop", "bee").status == 0
    assert den.spent() == den.model.totals()


def test_a_killed_turn_goes_on_in_the_same_conversation(den: ClaudeDen) -> None:
    once = f"[ -e begun ] || {{ touch begun; {STAY}; }}"
    den.sling(den.task("Stay", [{"say": "first"}, {"run": once}, DONE]), "--name", "bee")
    wait_until((den.folder / ".rookery/worktrees/bee/begun").exists, 60)
    wait_until(lambda: once in den.transcript(), 60)
    row = den.row("bee")
    assert row["runtime_session"]
    send(den.runner("bee"), signal.SIGKILL)
    den.wait_for("bee", "completed")
    assert den.row("bee")["runtime_session"] == row["runtime_session"]
    assert [state for state, _ in den.turns("bee")] == ["lost", "done"]
    assert den.spent() == den.model.totals()
    sent = den.model.served[-1].request["messages"]
    assert any("first" in str(message["content"]) for message in sent if message["role"] == "assistant")


@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_a_resumed_agent_goes_on_in_the_same_conversation(den: ClaudeDen, mode: str) -> None:
    spend = {"spend": {"input": 70, "output": 30}}
    ask = {"mail": {"to": "{parent}", "type": "question", "subject": "Well?"}}
    den.sling(den.task("Ask", [{"say": "first"}, spend, ask, {"wait": "mail"}, spend, DONE]), "--name", "bee", mode)
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    assert den.spent() == den.model.totals()
    conversation = den.row("bee")["runtime_session"]
    assert conversation

    resumed = den.rook.json("resume", "bee", "go on then").data

    assert resumed["has_conversation"]
    den.wait_for("bee", "completed")
    sent = den.model.served[-1].request["messages"]
    assert any("first" in str(message["content"]) for message in sent if message["role"] == "assistant")
    assert any("go on then" in str(message["content"]) for message in sent if message["role"] == "user")
    assert den.row("bee")["runtime_session"] == conversation
    assert den.spent() == den.model.totals()
    den.assert_no_process()
