"""The identity file of an agent follows the end of its session, and never keeps the session from ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from den import DONE, Den
from support import IN_DAEMON, wait_until


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


@pytest.mark.slow
def test_an_agent_ends_although_its_identity_cannot_be_written(den: Den) -> None:
    den.sling(den.task("Task", []), "--name", "bee")
    den.wait_for("bee", "waiting")
    blocked = den.folder / ".rookery/agents/bee"
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("a file where a folder should be")

    stopped = den.rook("stop", "bee")

    assert stopped.status == 0, stopped
    assert den.agent("bee")["outcome"] == "stopped"
    explained = den.rook.json("loop", "explain").data
    assert [identity["agent"] for identity in explained["facts"]["identities"]] == ["bee"]
    assert "bee" in den.rook("loop", "explain").out.decode()
    blocked.unlink()
    den.rook.json("loop", "run")
    assert "sessions: 1" in (blocked / "identity.yaml").read_text()
    assert den.rook.json("loop", "explain").data["facts"]["identities"] == []


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("step", ["session ended", "identity written"])
def test_a_stop_killed_after_the_end_leaves_the_identity_to_the_loop(den: Den, step: str) -> None:
    den.sling(den.task("Task", []), "--name", "bee")
    den.wait_for("bee", "waiting")
    den.killed(step, "stop", "bee")
    assert den.rook("loop", "run").status == 0
    identity = den.folder / ".rookery/agents/bee/identity.yaml"
    wait_until(lambda: identity.exists() and "sessions: 1" in identity.read_text(), 30)
    assert den.agent("bee")["outcome"] == "stopped"
    wait_until(lambda: den.rook.json("loop", "explain").data["facts"]["identities"] == [], 30)


@pytest.mark.skipif(IN_DAEMON, reason="the loop runs in the daemon")
@pytest.mark.slow
def test_a_loop_killed_after_the_end_leaves_the_identity_to_the_next(den: Den) -> None:
    den.killed("ready", "sling", den.task("Task", [DONE]), "--name", "bee")
    den.kill_loop("session ended")
    assert den.rook("loop", "run").status == 0
    den.wait_for("bee", "completed")
    identity = den.folder / ".rookery/agents/bee/identity.yaml"
    wait_until(lambda: identity.exists() and "sessions_completed: 1" in identity.read_text(), 30)
