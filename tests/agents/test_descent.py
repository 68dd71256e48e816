"""What an agent leaves behind stays under what started it: it is no person, and it ends with the turn."""

from __future__ import annotations

import json
import os
import shlex
import socket
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from rookery.config.environ import read_environ
from rookery.daemon.client_connection import Connection
from rookery.ops.caller import ForgedSender, prove
from rookery.ops.context import Context
from rookery.processes import proctable
from rookery.processes.proctree import identify, is_alive
from rookery.processes.python import module_command
from served import Served, make_call
from support import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not proctable.has_proc(), reason="without /proc parents are not looked at"),
]

_UNSET = "env -u ROOKERY_AGENT -u ROOKERY_TOKEN -u ROOKERY_SESSION -u ROOKERY_TURN -u ROOKERY_ROOT"
_ROOK = shlex.join(module_command("rookery.cli.main"))
# The shell that starts it ends first, so that it has lost its parent when it calls `rook`.
_ESCAPE = f"""
while [ -e /proc/$1/stat ]; do sleep 0.02; done
{_ROOK} task create escaped --json > $2.new 2>&1
mv $2.new $2
"""


def test_a_caller_that_has_ended_is_no_person(project: Path) -> None:
    """Another process may have its number by now."""
    ours, theirs = socket.socketpair()
    connection = Connection(theirs)
    assert connection.is_peer_alive()
    pid = os.fork()
    if pid == 0:
        pair = socket.socketpair()
        socket.send_fds(ours, [b"x"], [pair[0].fileno()])
        os._exit(0)
    _, (line, *_), _, _ = socket.recv_fds(theirs, 1, 1)
    os.waitpid(pid, 0)
    of_dead = Connection(socket.socket(fileno=line))
    if not of_dead.is_peer_alive():  # before Linux 6.5 nothing tells
        call = make_call(project, is_caller_alive=of_dead.is_peer_alive)
        served = Served(call, lambda: prove(read_environ(call.environ), lambda: pytest.fail("asked")))
        assert isinstance(served.end(), ForgedSender)
    else:
        assert tuple(map(int, os.uname().release.split(".")[:2])) < (6, 5)
    for socket_ in (connection, of_dead):
        socket_.close()
    ours.close()


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def wait_step(path: Path) -> dict[str, str]:
    return {"run": f"while [ ! -e {path} ]; do sleep 0.05; done"}


@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_an_orphan_without_variables_is_no_person(den: Den, tmp_path: Path, mode: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "escape.sh").write_text(_ESCAPE)
    start = f"cd {den.folder}; ({_UNSET} setsid nohup sh {tmp_path}/escape.sh $$ {out} >/dev/null 2>&1 &)"
    steps = [{"run": start}, wait_step(out), {"hang": True}]
    den.sling(den.task("Escape", steps), "--name", "bee", mode)
    wait_until(out.exists, 30)
    refused = json.loads(out.read_text())
    assert refused["error"]["code"] == "forged_sender", refused
    assert "started by an agent" in refused["error"]["message"]
    assert [task["title"] for task in den.rook.json("task", "list").data] == ["Escape"]
    den.rook("stop", "bee")


def test_what_a_turn_leaves_behind_ends_with_it_also_without_the_mark(den: Den, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    left = f"(env -i setsid sh -c 'echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000' >/dev/null 2>&1 &)"
    den.sling(den.task("Leave", [{"run": left}, wait_step(file), DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    pid = int(file.read_text())
    wait_until(lambda: identify(pid) is None, 20)


def test_what_says_that_it_is_a_runner_is_said_of_it_alone(den: Den, tmp_path: Path) -> None:
    """What it starts must end with it."""
    environs, program = tmp_path / "told", tmp_path / "bin" / "git"
    for folder in (environs, program.parent):
        folder.mkdir()
    real = git(den.folder, "--exec-path")
    program.write_text(f'#!/bin/sh\nenv > {environs}/$$\nexec {real}/git "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    den.rook("sling", den.task("Work", [{"edit": {"path": "a", "text": "a"}}, DONE]), "--name", "bee", env=env)
    den.wait_for("bee", "completed")
    texts = [path.read_text() for path in environs.iterdir()]
    assert len(texts) > 3
    assert not [text for text in texts if "ROOKERY_RUNNER=" in text]


def test_a_runner_that_an_agent_woke_outlives_it(den: Den, tmp_path: Path) -> None:
    go = tmp_path / "go"
    den.sling(den.task("Listen", [{"wait": "mail"}, wait_step(go), DONE]), "--name", "owl")
    den.wait_for("owl", "waiting")
    den.sling(den.task("Wake", [{"mail": {"to": "owl", "subject": "wake up"}}, {"hang": True}]), "--name", "bee")
    den.wait_for("owl", "working")
    woken, waker = den.runner("owl"), den.runner("bee")
    den.rook("stop", "bee")
    wait_until(lambda: not is_alive(waker), 20)
    assert is_alive(woken)
    go.write_text("")
    den.wait_for("owl", "completed")


def test_the_terminals_of_others_outlive_the_agent_that_began_them(den: Den) -> None:
    part = den.task("Part", [{"say": "here"}, {"hang": True}])
    sling = {"rook": ["sling", part, "--name", "owl", "--tmux"]}
    den.sling(den.task("Lead", [sling, {"hang": True}]), "--name", "queen", "--role", "coordinator")
    wait_until(lambda: den.agent("owl").get("state") == "working", 30)
    db = den.rook.open()
    db.execute("UPDATE sessions SET parent = 'human' WHERE agent = 'owl'")
    db.close()
    program = identify(pane(den, "owl"))
    assert program is not None
    den.rook("stop", "queen")
    assert is_alive(program)
    den.rook("stop", "owl")


def pane(den: Den, name: str) -> int:
    from rookery.config.environ import read_environ
    from rookery.config.loader import load_config
    from rookery.terminal.tmux import Tmux

    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    db.close()
    return Tmux(ctx.tmux_socket).list()[f"rook-{name}"].pid
