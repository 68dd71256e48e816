"""`rook status`: the project at one look, in a pipe, on a narrow terminal, and kept up to date."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_rows import Agent
from conftest import Clock, Rook
from den import DONE, Den
from rookery.cli.views import agents as view
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.overview.service import Overview, overview
from rookery.sessions import store
from support import add, child_environ, rook_argv, wait_until

_LONG = "A title that is much too long for a terminal with as few columns as most of them have"


@pytest.fixture
def ctx(project: Path) -> Iterator[Context]:
    db = Rook(project).open()
    yield Context.at(str(project), db, load_config(str(project), read_environ({}), {}).config)
    db.close()


def _end(db: Database, agent: Agent, at: str) -> None:
    session = store.session(db, agent.session_id)
    with db.write():
        store.change_session(db, session, at=at, move="end", outcome="crashed", reason="it broke", ended_at=at)


def test_it_counts_what_waits_for_a_person_worktrees_and_tasks(ctx: Context, rook: Rook) -> None:
    lead = Agent(rook.folder, "queen", "lead")
    Agent(rook.folder, "bee", under=lead)
    add(ctx.db, "ready")
    for name in ("queen", "gone"):
        os.makedirs(os.path.join(ctx.root, ".rookery", "worktrees", name))
    sent = rook("mail", "send", "human", "--type", "question", "--subject", "Which?", "--body", "?", env=lead.env)
    assert sent.status == 0, sent

    shown = rook("status").out.decode()
    assert shown.splitlines()[0].startswith("1 thing needs you: `rook ")
    assert "asked human" in shown
    assert "2 worktrees, 1 without an agent\ntasks: 1 ready, 2 in progress\n" in shown
    data = rook.json("status").data
    assert (data["inbox"], data["ended"]) == (1, [])
    assert [(agent["agent"], agent["state"]) for agent in data["agents"]] == [("queen", "working"), ("bee", "working")]
    assert (data["worktrees"], data["tasks"]["ready"]) == ({"total": 2, "without_agent": 1}, 1)


def test_agents_stand_under_the_one_that_they_answer_to(rook: Rook) -> None:
    lead = Agent(rook.folder, "queen", "lead")
    Agent(rook.folder, "ant")
    Agent(rook.folder, "bee", under=lead)
    lines = rook("status").out.decode().splitlines()
    rows = [line for line in lines if any(mark in line for mark in ("queen", "bee", "ant"))]
    assert [row.index(name) for row, name in zip(rows, ("queen", "bee", "ant"), strict=True)] == [2, 4, 2]


def test_what_ended_within_the_hour_is_shown_with_its_reason_and_the_rest_on_request(
    ctx: Context, rook: Rook, clock: Clock
) -> None:
    _end(ctx.db, Agent(rook.folder, "bee"), ctx.now())
    again = Agent(rook.folder, "cat")
    _end(ctx.db, again, ctx.now())
    assert [agent.agent for agent in overview(ctx).ended] == ["cat", "bee"]
    shown = rook("status").out.decode()
    assert "crashed 0s ago" in shown
    assert "(it broke)" in shown
    clock.advance(hours=2)
    data = rook.json("status").data
    assert (data["agents"], data["ended"]) == ([], [])
    assert [agent["agent"] for agent in rook.json("status", "--all").data["ended"]] == ["cat", "bee"]
    Agent(rook.folder, "cat")
    data = rook.json("status", "--all").data
    assert [agent["agent"] for agent in data["agents"]] == ["cat"]
    assert [agent["agent"] for agent in data["ended"]] == ["bee"]


def test_a_state_that_a_view_does_not_know_is_shown_as_it_is(ctx: Context, rook: Rook) -> None:
    agent = Agent(rook.folder, "bee")
    with ctx.db.write() as db:
        db.execute("UPDATE sessions SET state = 'resting' WHERE id = ?", (agent.session_id,))
    seen = overview(ctx)
    assert any("resting" in str(row) for row in view.alive(seen.agents, seen.at).rows)


def test_a_circle_of_parents_hides_no_agent(ctx: Context, rook: Rook) -> None:
    Agent(rook.folder, "ant")
    Agent(rook.folder, "bee")
    with ctx.db.write() as db:
        db.execute("UPDATE sessions SET parent = CASE agent WHEN 'ant' THEN 'bee' ELSE 'ant' END")
    seen: Overview = overview(ctx)
    assert len(view.alive(seen.agents, seen.at).rows) == 2


class _Terminal:
    """`rook` on a pseudo-terminal of some size."""

    def __init__(self, folder: Path, *words: str, columns: int = 80, lines: int = 24) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns, lines)
        environ = child_environ({"TERM": "xterm-256color", "NO_COLOR": "1"})
        environ = {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")}
        self.child = subprocess.Popen(
            rook_argv(*words),
            cwd=folder,
            env=environ,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self._shown = b""

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def shown(self) -> str:
        """Everything that it has printed until now."""
        try:
            while part := os.read(self._ours, 65536):
                self._shown += part
        except (BlockingIOError, OSError):  # nothing more now, or the other side is closed
            pass
        return self._shown.decode(errors="replace")

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._ours, keys)

    def end(self) -> int:
        """Wait until it has ended."""
        wait_until(lambda: self.shown is not None and self.child.poll() is not None, 30)
        status = self.child.wait()
        assert self.shown
        os.close(self._ours)
        return status


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_terminal_cuts_a_name_a_state_or_a_task(ctx: Context, rook: Rook, columns: int) -> None:
    name = "an-agent-with-quite-a-long-name"
    lead = Agent(rook.folder, "queen", "lead")
    agent = Agent(rook.folder, name, under=lead)
    with ctx.db.write() as db:
        db.execute("UPDATE tasks SET title = ? WHERE id = ?", (_LONG, agent.task))
    rook("mail", "send", "queen", "--type", "question", "--subject", "?", "--body", "?", env=agent.env)
    terminal = _Terminal(rook.folder, "status", columns=columns)
    assert terminal.end() == 0
    lines = re.sub(r"\x1b\[\d*m", "", terminal.shown).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    for whole in (name, "working ", agent.task[-6:].lower(), "asked queen ", lead.task[-6:].lower()):
        assert any(whole in line for line in lines), whole


@pytest.mark.slow
def test_watching_redraws_in_place_and_leaves_the_terminal_as_it_was(rook: Rook) -> None:
    Agent(rook.folder, "queen", "lead")
    terminal = _Terminal(rook.folder, "status", "--watch")
    wait_until(lambda: "queen" in terminal.shown, 30)
    assert terminal.shown.startswith("\x1b[?1049h")
    drawn = terminal.shown.count("\x1b[H")
    wait_until(lambda: terminal.shown.count("\x1b[H") > drawn, 30)  # times go on although nothing has happened
    Agent(rook.folder, "bee")
    wait_until(lambda: "bee" in terminal.shown, 30)
    terminal.resize(40, 3)
    wait_until(lambda: "make the window higher" in terminal.shown, 30)
    terminal.press(b"\x03")
    assert terminal.end() == 128 + signal.SIGINT
    assert terminal.shown.endswith("\x1b[?1049l")
    assert "Traceback" not in terminal.shown


@pytest.mark.slow
def test_an_agent_that_works_says_what_it_did_last(repo: Path) -> None:
    den = Den(repo)
    den.sling(den.task("Write", [{"edit": {"path": "src/app.py", "text": "x"}}, {"hang": True}]), "--name", "bee")
    den.sling(den.task("Wait", [{"until": {"mail_type": "status"}}, DONE]), "--name", "cat")
    den.wait_for("cat", "waiting")
    wait_until(lambda: "created src/app.py" in den.rook("status").out.decode(), 30)
    assert "waits for mail" in den.rook("status").out.decode()
    assert den.agent("bee")["last"]["at"] is not None
    den.rook("stop", "bee")
    den.rook("stop", "cat")
