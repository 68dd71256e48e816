"""The link of a sandbox's host: a dead daemon is back without any call; where none may be, the host serves itself."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import Live
from live import live as live

from agent_rows import Agent
from daemons import hello, receive
from rookery.client import frames
from rookery.daemon import address
from rookery.daemon.hello import Guest
from rookery.daemon.link import Link
from rookery.processes.proctree import is_alive
from rookery.sandbox.model import socket_folder
from support import child_environ, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def bee(live: Live) -> Iterator[Agent]:
    agent = Agent(live.folder, "bee")
    folder = Path(socket_folder(agent.session_id))
    folder.mkdir(parents=True, mode=0o700)
    yield agent
    shutil.rmtree(folder)


@pytest.fixture
def link(live: Live, bee: Agent) -> Iterator[Link]:
    guest = Guest(bee.session_id, child_environ({**bee.env, "ROOKERY_CONFINED": "1"}), live.root)
    link_ = Link(live.root, f"{socket_folder(bee.session_id)}/rook", guest)
    yield link_
    link_.close()


def answers(agent: Agent) -> bool:
    """True if a call of the agent is served as its own."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20)
        try:
            line.connect(f"{socket_folder(agent.session_id)}/rook")
        except OSError:
            return False
        line.sendall(hello(frames.RUN, ["mail", "check"], Path("/"), {}))
        kinds = [kind for kind, _ in iter(lambda: receive(line), (b"", b""))]
    return kinds[:1] == [frames.TAKEN] and kinds[-1:] == [frames.EXIT]


def test_a_dead_daemon_is_back_though_no_one_calls(
    live: Live, bee: Agent, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOKERY_DAEMON", "on")
    link.open()
    assert answers(bee)
    first = live.identity
    live.kill()
    wait_until(lambda: live.place.process not in (None, first) and is_alive(live.identity))
    wait_until(lambda: answers(bee))
    assert live.log().count("serving") == 2
    link.close()


def test_without_a_daemon_the_host_serves_its_agent(live: Live, bee: Agent, link: Link) -> None:
    link.open()
    assert answers(bee)
    assert address.read_address(live.root) is None
