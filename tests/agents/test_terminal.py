"""Interactive agents in tmux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from den import DONE, Den

from rookery.terminal.tmux import Tmux, socket_path
from support import wait_until


@pytest.fixture
def den(repo: Path) -> Iterator[Den]:
    den = Den(repo)
    yield den
    Tmux(socket_path(str(repo))).kill_server()


def test_an_interactive_agent_gets_its_task_waits_is_woken_and_ends(den: Den) -> None:
    steps = [
        {"say": "Hello from {agent}"},
        {"mail": {"to": "{parent}", "type": "question", "subject": "Well?"}},
        {"until": {"mail_from": "human"}},
        {"edit": {"path": "answer.txt", "text": "{mail.body}\n"}},
        {"commit": "Answer"},
        DONE,
    ]
    slung = den.sling(den.task("Ask", steps), "--name", "bee", "--tmux")
    assert slung["mode"] == "tmux"
    den.wait_for("bee", "waiting")
    assert "Hello from bee" in den.rook("inspect", "bee").out.decode()
    assert any(word.endswith("tmux") for word in den.rook.json("attach", "bee").data["command"])

    den.rook.json("mail", "reply", den.mail(type="question")[0]["id"], "--body", "Fine")

    ended = den.wait_for("bee", "completed")
    assert ended["turns"] >= 2
    assert (den.folder / ".rookery/worktrees/bee/answer.txt").read_text() == "Fine\n"
    assert all(each["read_at"] for each in den.mail(to="bee"))
    den.assert_no_process()


def test_stop_ends_an_interactive_agent(den: Den) -> None:
    den.sling(den.task("Hang", [{"child": "sleep 1000"}, {"hang": True}]), "--name", "bee", "--tmux")
    wait_until(lambda: "child" in den.rook("inspect", "bee").out.decode(), 60)
    assert den.rook("stop", "bee", "--clean").status == 0
    assert den.agent("bee")["outcome"] == "stopped"
    den.assert_tidy(worktrees=0, branches=0)


def test_an_interactive_agent_whose_terminal_dies_is_seen(den: Den) -> None:
    epic = den.task("Lead", [{"until": {"mail_type": "worker_died"}}, DONE])
    den.sling(epic, "--role", "lead", "--name", "queen")
    den.wait_for("queen", "waiting")
    task = den.task("Die", [{"crash": 4}], "--parent", epic)
    den.sling(task, "--name", "bee", "--tmux", "--parent", "queen")
    ended = den.wait_for("bee", "crashed")
    assert "4" in ended["reason"]
    den.wait_for("queen", "completed")
    den.assert_no_process()
