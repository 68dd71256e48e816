"""Calls from a sandbox: the socket identifies the caller, and what the caller says of itself counts for nothing."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_rows import Agent
from daemons import OwnDaemon, hello, receive, run_as_guest
from rookery.client import frames
from rookery.config.project import database_path
from rookery.daemon.hello import Guest
from rookery.db.database import Database
from rookery.sandbox.model import socket_folder
from support import child_environ, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def bee(project: Path) -> Agent:
    return Agent(project, "bee", "builder")


def guest_of(agent: Agent) -> Guest:
    env = child_environ({**agent.env, "ROOKERY_CONFINED": "1"})
    return Guest(agent.session_id, env, str(agent.root))


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


def test_it_is_the_agent_whose_socket_it_is(project: Path, bee: Agent) -> None:
    assert run_as_guest(str(project), guest_of(bee), "mail", "send", "human", "--subject", "hi")[0] == 0
    db = Database.open(database_path(str(project)))
    assert db.all("SELECT sender, subject FROM messages") == [("bee", "hi")]
    db.close()


def test_in_a_process_of_its_own_too(project: Path, bee: Agent) -> None:
    status, _, err = run_as_guest(str(project), guest_of(bee), "sling", bee.task)
    assert status == 1
    assert b"a builder may not `rook sling`" in err


@pytest.mark.parametrize("words", [["-C", "/", "status"], ["-c", "sandbox.mode=off", "status"], ["daemon", "stop"]])
def test_nothing_outside_can_be_named_and_no_daemon_be_stopped(project: Path, bee: Agent, words: list[str]) -> None:
    status, _, err = run_as_guest(str(project), guest_of(bee), *words)
    assert status == 1, err


def test_after_its_session_has_ended_it_is_no_caller(project: Path, bee: Agent) -> None:
    bee.end()
    status, _, err = run_as_guest(str(project), guest_of(bee), "mail", "check")
    assert status == 1
    assert b"has ended" in err
    assert run_as_guest(str(project), guest_of(bee), "pre-tool", message=b"{}")[0] == 2


def test_a_guest_cannot_ask_for_a_socket(daemon: OwnDaemon, bee: Agent, tmp_path: Path) -> None:
    with daemon.connect(guest_of(bee)) as line:
        line.settimeout(20)
        line.sendall(hello(frames.LISTEN, [str(tmp_path / "s")], tmp_path, bee.env))
        assert receive(line) == (b"", b"")
    assert not (tmp_path / "s").exists()


@pytest.fixture
def place(bee: Agent) -> Iterator[Path]:
    """Where the socket of the agent belongs."""
    folder = Path(socket_folder(bee.session_id))
    folder.mkdir(parents=True, mode=0o700)
    yield folder / "rook"
    shutil.rmtree(folder)


def test_only_a_living_agents_host_is_given_a_socket(
    daemon: OwnDaemon, bee: Agent, tmp_path: Path, place: Path
) -> None:
    forged: tuple[dict[str, str], ...] = (
        {},
        {**bee.env, "ROOKERY_TOKEN": "0" * 48},
        {"ROOKERY_SESSION": bee.session_id},
    )
    for env, path in [*((env, place) for env in forged), (bee.env, tmp_path / "s"), (bee.env, daemon_socket(bee))]:
        assert ask_to_listen(daemon, path, env) == (b"", b"")
        assert not path.exists()
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.LISTEN, [str(place)], bee.root, bee.env))
        assert receive(line) == (frames.TAKEN, b"")
        assert place.is_socket()
    wait_until(lambda: not place.exists())


def daemon_socket(agent: Agent) -> Path:
    return agent.root / ".rookery" / "run" / "daemon.sock"


def ask_to_listen(daemon: OwnDaemon, path: Path, env: dict[str, str]) -> tuple[bytes, bytes]:
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.LISTEN, [str(path)], Path(daemon.daemon.root), env))
        return receive(line)


def test_a_host_that_hangs_up_leaves_no_socket(daemon: OwnDaemon, bee: Agent, place: Path) -> None:
    for _ in range(5):
        with daemon.connect() as line:
            line.sendall(hello(frames.LISTEN, [str(place)], bee.root, bee.env))
    wait_until(lambda: not daemon.daemon.is_busy and not place.exists())


def test_a_socket_that_was_removed_is_bound_again_and_ends_with_its_link(
    daemon: OwnDaemon, bee: Agent, place: Path
) -> None:
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.LISTEN, [str(place)], bee.root, bee.env))
        assert receive(line) == (frames.TAKEN, b"")
        listener = next(iter(daemon.daemon._links.values()))
        place.unlink()
        daemon.daemon._listen_again(listener)
        assert place.is_socket()
    wait_until(lambda: not place.exists())


def test_a_host_whose_socket_cannot_be_bound_again_loses_its_connection(
    daemon: OwnDaemon, bee: Agent, place: Path
) -> None:
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.LISTEN, [str(place)], bee.root, bee.env))
        assert receive(line) == (frames.TAKEN, b"")
        listener = next(iter(daemon.daemon._links.values()))
        shutil.rmtree(place.parent)
        daemon.daemon._listen_again(listener)
        assert receive(line) == (b"", b"")  # it asks again
    place.parent.mkdir()


def test_a_file_in_the_place_of_the_socket_is_not_removed(daemon: OwnDaemon, bee: Agent, place: Path) -> None:
    place.write_text("precious")
    assert ask_to_listen(daemon, place, bee.env) == (b"", b"")
    assert place.read_text() == "precious"


def test_the_session_of_another_project_is_not_this_ones(daemon: OwnDaemon, bee: Agent, place: Path) -> None:
    """The one who proves a session proves it in its own project: a guest speaks there alone."""
    with daemon.connect() as link:
        link.settimeout(20)
        link.sendall(hello(frames.LISTEN, [str(place)], bee.root, {**bee.env, "ROOKERY_ROOT": "/elsewhere"}))
        assert receive(link)[0] == frames.YOURSELF


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"C",
        b"C\xff\xff\xff\xff",
        b"X\0\0\0\0",
        frames.pack(frames.CALL),
        frames.pack(frames.CALL, b"\0\0\0\x05ab"),
        frames.pack(frames.CALL, frames.pack_fields([frames.PROTOCOL] * 3)),
        frames.pack(frames.CALL, frames.pack_fields([b"2", *[b""] * 8])),
        frames.pack(frames.CALL, frames.pack_fields([b"1", b"run", b"/", b"x", b"000", b"80x24", b"utf-8", b"0"])),
        frames.pack(frames.CALL, frames.pack_fields([b"1", b"run", b"/", b"22", b"000", b"80x24", b"utf-8", b"9"])),
        frames.pack(frames.CALL, frames.pack_fields([b"1", b"run", b"/", b"22", b"000", b"80", b"utf-8", b"0"])),
    ],
)
def test_what_makes_no_sense_is_dropped_and_harms_no_other_caller(
    daemon: OwnDaemon, project: Path, request_: bytes
) -> None:
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(request_)
        line.shutdown(socket.SHUT_WR)
        assert line.recv(10) == b""
    result = daemon.run(["task", "list"], project, child_environ(), b"", 20)
    assert result is not None
    assert result[0] == 0
