"""Hooks through the daemon: answered as that agent, and closed whenever the daemon does not answer as it should."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from impostor import Impostor
from live import Live
from live import live as live

from agent_rows import Agent
from daemons import hello
from rookery.client import frames
from rookery.config.project import database_path
from rookery.daemon import address
from rookery.db.database import Database
from rookery.runtimes.hooks import hook_command
from support import SOURCE, child_environ

pytestmark = pytest.mark.slow

FINE = {"tool_name": "Bash", "tool_input": {"command": "git status"}}
BAD = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}


def message(live: Live, call: Mapping[str, object]) -> bytes:
    return json.dumps({"session_id": "x", "tool_use_id": "t", "cwd": live.root, **call}).encode()


@pytest.fixture
def bee(live: Live) -> Agent:
    """An agent whose program is the test."""
    return Agent(live.folder, "bee", "builder")


def test_the_guard_judges_in_the_daemon(live: Live, bee: Agent) -> None:
    assert live.hook("pre-tool", message(live, FINE), bee.env).status == 0
    denied = live.hook("pre-tool", message(live, BAD), bee.env)
    assert denied.status == 2
    assert b"instead" in denied.err
    assert live.log().count("serving") == 1


def test_a_token_that_is_not_the_agents_gets_no_tool(live: Live, bee: Agent) -> None:
    assert live.hook("pre-tool", message(live, FINE), {**bee.env, "ROOKERY_TOKEN": "0" * 48}).status == 2
    without = {name: value for name, value in bee.env.items() if name != "ROOKERY_TOKEN"}
    assert live.hook("pre-tool", message(live, FINE), without).status == 2
    assert live.hook("pre-tool", b"nonsense", bee.env).status == 2


def test_killed_it_is_started_again_for_a_hook(live: Live, bee: Agent) -> None:
    live.hook("pre-tool", message(live, FINE), bee.env)
    live.kill()
    assert live.hook("pre-tool", message(live, FINE), bee.env).status == 0


def test_stopped_it_denies_and_loses_no_other_event(live: Live, bee: Agent) -> None:
    assert live.hook("prompt", b"{}", bee.env).status == 0
    assert turns(live) == ["running"]
    live.kill(signal.SIGSTOP)
    denied = live.hook("pre-tool", message(live, FINE), bee.env)
    assert denied.status == 2
    assert denied.err.startswith(b"rook: the guard does not answer")
    ended = live.hook("stop", b"{}", bee.env)
    assert (ended.status, ended.out, ended.err) == (0, b"", b"")
    assert turns(live) == ["done"]


def turns(live: Live) -> list[str]:
    """The states of the agent's turns."""
    db = Database.open(database_path(live.root))
    states = [row[0] for row in db.all("SELECT state FROM turns")]
    db.close()
    return states


@pytest.mark.parametrize(("event", "tries"), [("post-tool", 1), ("stop", 3)])
def test_the_end_of_a_turn_is_reported_again_if_the_daemon_was_killed_over_it(
    live: Live, bee: Agent, event: str, tries: int
) -> None:
    """Nothing else is: it may have been done already."""
    impostor = Impostor(live, frames.pack(frames.TAKEN))
    try:
        assert live.hook(event, message(live, FINE), bee.env).status == 0
        assert impostor.calls == tries
    finally:
        impostor.close()
        Path(address.lock_path(live.root)).unlink()


def test_a_person_is_not_kept_waiting(live: Live) -> None:
    live.run("task", "list")
    live.kill(signal.SIGSTOP)
    assert live.hook("prompt", b"{}", {}).status == 0


def test_off_runs_in_the_hooks_own_process(live: Live, bee: Agent) -> None:
    done = subprocess.run(
        hook_command("pre-tool"),
        cwd=live.folder,
        env=child_environ({**bee.env, "ROOKERY_DAEMON": "off"}),
        input=message(live, BAD),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert address.read_address(live.root) is None


TAKEN = frames.pack(frames.TAKEN)
ANSWERS: dict[str, bytes | None] = {
    "nothing at all": b"",
    "silence": None,
    "taken, and then nothing": TAKEN,
    "half a frame": TAKEN + b"O\0\0",
    "half an answer": TAKEN + frames.pack(frames.OUT, b"{}"),
    "a status that is none": TAKEN + frames.pack(frames.EXIT, b"fine"),
    "another status": TAKEN + frames.pack(frames.EXIT, b"0")[:-1],
    "junk": b"HTTP/1.1 200 OK\r\n\r\n",
    "a huge frame": TAKEN + b"O\xff\xff\xff\xff" + b"x" * 100,
    "a frame of another version": frames.pack(b"Z", b"2"),
    "leaving for ever": frames.pack(frames.AGAIN),
    "do it yourself": frames.pack(frames.YOURSELF),
}


@pytest.fixture
def pretend(live: Live) -> Iterator[Callable[[bytes | None], None]]:
    impostors: list[Impostor] = []
    yield lambda answer: impostors.append(Impostor(live, answer))
    for impostor in impostors:
        impostor.close()
    Path(address.lock_path(live.root)).unlink()


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_tool_runs_on_an_answer_that_makes_no_sense(
    live: Live, bee: Agent, pretend: Callable[[bytes | None], None], answer: str
) -> None:
    pretend(ANSWERS[answer])
    assert live.hook("pre-tool", message(live, FINE), bee.env).status == 2
    silent = live.hook("post-tool", message(live, FINE), bee.env)
    assert (silent.status, silent.out, silent.err) == (0, b"", b"")


@pytest.mark.parametrize("broken", ["daemon/start.py", "client/frames.py", "cli/hook_edge.py", "base/errors.py"])
@pytest.mark.parametrize("mode", ["on", "off"])
def test_no_tool_runs_while_rookery_itself_is_half_there(
    live: Live, bee: Agent, tmp_path: Path, broken: str, mode: str
) -> None:
    """As in the middle of an upgrade."""
    source = tmp_path / "installed"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (source / "rookery" / broken).write_text("def (\n")
    argv = [word.replace(SOURCE, str(source)) for word in hook_command("pre-tool")]
    done = subprocess.run(
        argv,
        cwd=live.folder,
        env=live.environ({**bee.env, "ROOKERY_DAEMON": mode, "PYTHONPATH": str(source)}),
        input=message(live, BAD),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2, done


def test_an_agent_without_a_project_gets_no_tool(live: Live, bee: Agent, tmp_path: Path) -> None:
    without = {name: value for name, value in bee.env.items() if name != "ROOKERY_ROOT"}
    done = subprocess.run(
        hook_command("pre-tool"), cwd=tmp_path, env=live.environ(without), input=b"{}", capture_output=True, check=False
    )
    assert done.returncode == 2


def test_hooks_without_a_message_delay_no_other_caller(live: Live, bee: Agent) -> None:
    live.run("task", "list")
    begin = hello(frames.HOOK, ["pre-tool"], live.folder, bee.env)
    lines = []
    for _ in range(70):
        line = socket.socket(socket.AF_UNIX)
        line.connect(live.place.socket)
        line.sendall(begin)
        lines.append(line)
    assert live.hook("pre-tool", message(live, FINE), bee.env).status == 0
    for line in lines:
        line.close()
