"""Interactive agents in tmux."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from den import DONE, Den
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.flows.loop_process import react
from rookery.ops.context import Context
from rookery.processes.proctree import end_tree
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.status import service as look
from rookery.status.panes import StatusWatch
from rookery.terminal.tmux import Tmux, socket_path
from rookery.turns import interactive
from rookery.turns.settlement import take_snapshot
from support import wait_until


@pytest.fixture
def den(repo: Path) -> Iterator[Den]:
    den = Den(repo)
    yield den
    Tmux(socket_path(str(repo))).kill_server()


@pytest.mark.slow
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
    assert all(message["read_at"] for message in den.mail(to="bee"))
    den.assert_no_process()


@pytest.mark.slow
def test_what_an_agent_in_a_terminal_did_can_be_read_after_its_end(den: Den) -> None:
    steps = [{"say": "Here I was"}, {"edit": {"path": "a.txt", "text": "a"}}, DONE]
    den.sling(den.task("Talk", steps), "--name", "bee", "--tmux")
    den.wait_for("bee", "completed")
    wait_until(lambda: b"last screen" in den.rook("inspect", "bee").out, 30)
    shown = den.rook("inspect", "bee", "--follow").out.decode()  # it has ended, so following does
    assert "last screen" in shown
    assert "● Here I was" in shown
    assert "a.txt" in den.rook("logs", "bee", "--follow").out.decode()
    refused = den.rook.json("attach", "bee").error
    assert "has ended" in refused["message"]
    for command in ("rook inspect bee", "rook logs bee"):
        assert f"`{command}`" in refused["hint"]
        assert den.rook(*command.split()[1:]).status == 0


@pytest.mark.slow
def test_stop_ends_an_interactive_agent(den: Den) -> None:
    den.sling(den.task("Hang", [{"child": "sleep 1000"}, {"hang": True}]), "--name", "bee", "--tmux")
    wait_until(lambda: "child" in den.rook("inspect", "bee").out.decode(), 60)
    assert den.rook("stop", "bee", "--clean").status == 0
    assert den.agent("bee")["outcome"] == "stopped"
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_that_settle_a_dead_terminal_agree_on_how_it_ended(den: Den, monkeypatch: pytest.MonkeyPatch) -> None:
    den.sling(den.task("Hang", [{"hang": True}]), "--name", "bee", "--tmux")
    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    session = store.sessions(db, alive=True)[0]

    def settle_meanwhile(ctx: Context, session: Session) -> str | None:
        monkeypatch.setattr(interactive, "take_snapshot", take_snapshot)
        interactive.end_terminal(ctx, session.id)
        return take_snapshot(ctx, session)

    monkeypatch.setattr(interactive, "take_snapshot", settle_meanwhile)
    with den.without_loop():
        end_tree(None, ("ROOKERY_SESSION", session.id), 0)
        interactive.end_terminal(ctx, session.id)

    ended = store.session(db, session.id)
    assert (ended.outcome, ended.reason) == ("crashed", "killed (exit status 137, often out of memory)")
    assert not Tmux(ctx.tmux_socket).has(session.terminal)
    db.close()


@pytest.mark.slow
def test_whoever_watches_sees_screens_and_a_death_without_asking(den: Den) -> None:
    """One tmux client for all terminals: no other command notices the death first."""
    den.sling(den.task("Talk", [{"say": "Here I am"}, {"hang": True}]), "--name", "bee", "--tmux")
    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    ctx.react = lambda: react(ctx)
    with StatusWatch(ctx) as watch:
        wait_until(lambda: "Here I am" in watch.screens().get("bee", ""), 30)
        assert "Here I am" in str(look.status(ctx, screens=watch.screens())[0].last)

        session = store.sessions(db, alive=True)[0]
        end_tree(None, ("ROOKERY_SESSION", session.id), 0)
        deadline = time.monotonic() + 30
        while store.session(db, session.id).is_alive and time.monotonic() < deadline:
            watch.wait(5)
        assert store.session(db, session.id).outcome == "crashed"
        watch.wait(0.01)  # no agent is left to look at
        assert watch.screens() == {}
    db.close()


@pytest.mark.slow
def test_an_identity_names_where_the_agent_is_at_home(den: Den) -> None:
    steps = [{"edit": {"path": f"src/deep/er/{number}.txt", "text": "x\n"}} for number in range(3)]
    task = den.task("Work", [*steps, {"edit": {"path": "top.txt", "text": "x\n"}}, {"commit": "Work"}, DONE])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")
    assert den.rook.json("agents", "show", "bee").data["domains"] == ["src/deep", "."]
    identity = den.folder / ".rookery/agents/bee/identity.yaml"  # it follows the end of the session
    wait_until(lambda: identity.exists() and 'domains: ["src/deep","."]' in identity.read_text(), 30)


@pytest.mark.slow
def test_what_a_program_writes_down_after_its_last_turn_is_counted_once(den: Den) -> None:
    den.sling(den.task("Work", [DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    db = den.rook.open()
    session = db.value("SELECT id FROM sessions")
    late = den.folder / ".rookery/sessions" / str(session) / "runtime/claude/projects/-repo/1.jsonl"
    late.parent.mkdir(parents=True)
    usage = {"input_tokens": 70, "output_tokens": 7}
    message = {"id": "late", "model": "opus", "usage": usage}
    late.write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
    with den.without_loop(), db.write():
        db.execute("UPDATE sessions SET swept_at = NULL")  # as the end of a turn in a terminal leaves it

    den.kill_loop("rest counted")
    assert not db.value("SELECT swept_at FROM sessions")
    den.rook.json("loop", "run")

    assert db.value("SELECT swept_at FROM sessions")
    assert db.all("SELECT model, input, output FROM turn_usage WHERE input > 0") == [("opus", 70, 7)]
