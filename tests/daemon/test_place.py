"""Lock and socket: whatever is found in their place, a command runs, and no tool does without an answer."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from impostor import write_lock
from live import Live
from live import live as live

from agent_rows import Agent
from daemons import OwnDaemon
from rookery.base.errors import ProgramFailed
from rookery.client import frames
from rookery.client.connection import Connection
from rookery.daemon import address, start
from rookery.processes import holder, proctable
from rookery.processes.proctree import is_alive
from support import wait_until

FINE = json.dumps({"session_id": "x", "tool_name": "Bash", "tool_input": {"command": "git status"}}).encode()
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has processes of several users")


@contextmanager
def lock_held(root: str, kind: int) -> Iterator[int]:
    file = os.open(address.lock_path(root), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, kind)
        yield file
    finally:
        os.close(file)


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / ".rookery" / "run").mkdir(parents=True)
    return str(tmp_path)


def test_who_only_looks_is_not_taken_for_a_daemon(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock_held(root, fcntl.LOCK_SH) as looking:
        assert not address.is_locked(root)  # two may look at once
        monkeypatch.setattr("rookery.daemon.address.time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        lock = address.take_lock(root)
    assert lock is not None
    assert address.is_locked(root)
    assert address.take_lock(root) is None
    os.close(lock)
    assert not address.is_locked(root)


def test_the_address_of_an_earlier_daemon_is_not_taken_for_that_of_the_next(root: str) -> None:
    lock = address.take_lock(root)
    assert lock is not None
    address.write_address(lock, address.describe_self(root, {}, "1", "now"))
    os.close(lock)
    assert address.read_address(root) is not None
    lock = address.take_lock(root)  # it does not listen yet
    assert address.read_address(root) is None
    assert lock is not None
    os.close(lock)


def test_a_link_in_the_place_of_the_lock_is_not_followed(root: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    os.symlink(tmp_path / "precious", address.lock_path(root))
    with pytest.raises(OSError, match="symbolic links"):
        address.take_lock(root)
    assert not address.is_locked(root)


def test_the_lock_file_names_socket_host_boot_and_namespace(root: str) -> None:
    lock = address.take_lock(root)
    assert lock is not None
    address.write_address(lock, address.describe_self(root, {}, "1", "now"))
    os.close(lock)
    first = Path(address.lock_path(root)).read_text().splitlines()[0]
    place = address.read_address(root)
    assert place is not None
    lock_file = os.stat(address.lock_path(root))
    assert first == f"{lock_file.st_dev}:{lock_file.st_ino} {place.socket}"
    assert place.socket == f"{root}/.rookery/run/daemon.sock"
    held = holder.read(place.pid, place.holder)
    assert held.identity.pid == os.getpid()
    assert held.host == os.uname().nodename
    assert proctable.boot_of(held.identity) == proctable.this_boot()
    assert held.namespace == proctable.namespace()


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    def make(name: str, *, is_served: bool, age: float) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.bind(str(tmp_path / name))
        if is_served:
            line.listen()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
        return line

    lines = [
        make("served.sock", is_served=True, age=9e9),
        make("dead.sock", is_served=False, age=1000),
        make("new.sock", is_served=False, age=0),
    ]
    for name, age in (("sandbox-old", 9000), ("sandbox-new", 0), ("sandbox-used", 9000), ("other", 9000)):
        (tmp_path / name).mkdir()
        if name == "sandbox-used":
            (tmp_path / name / "s").touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    (tmp_path / "file.sock").write_text("mine")
    os.utime(tmp_path / "file.sock", (0, 0))
    address.sweep(str(tmp_path), time.time())
    address.sweep(str(tmp_path / "missing"), 0)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"served.sock", "new.sock", "file.sock", "sandbox-new", "sandbox-used", "other"}
    for line in lines:
        line.close()


def test_the_longest_path_of_a_socket(tmp_path: Path) -> None:
    rest = len(os.fsencode("/.rookery/run/daemon.sock"))
    for length, is_beside in ((103, True), (104, False)):
        root = "/" + "x" * (length - rest - 1)
        path = address.socket_path(root, None)
        assert (path == f"{root}/.rookery/run/daemon.sock") is is_beside
        assert len(os.fsencode(path)) <= 103
    assert address.socket_path("/" + "x" * 200, f"/{'y' * 90}").startswith(f"/tmp/rookery-{os.getuid()}/")


@needs_root
def test_a_folder_for_sockets_is_ones_own_and_private() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as near:
        folder = Path(near) / "rookery"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        address.socket_path("/" + "x" * 200, near)
        assert folder.stat().st_mode & 0o777 == 0o700
        os.chown(folder, NOBODY, NOBODY)
        with pytest.raises(ProgramFailed, match="not a folder of yours"):
            address.socket_path("/" + "x" * 200, near)


def test_the_project_of_another_is_refused(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(start.NotServed, match="belongs to another user"):
        start.start_daemon(root)


WHOLE = {"socket": "/x", "pid": 1, "holder": "", "version": "1", "since": "now"}
JUNK: dict[str, bytes] = {
    "nothing": b"",
    "no end": b"/nowhere",
    "bytes": b"\xff\xfe\x00\n\x00",
    "a long path": b"/" + b"x" * 300 + b"\n{}\n",
    "a path through a file": b"/etc/passwd/x\n{}\n",
    "many brackets": b"/nowhere\n" + b"[" * 4000,
    "no object": b"/nowhere\n[1, 2]\n",
    "a folder": b"/tmp\n" + json.dumps({**WHOLE, "socket": "/tmp"}).encode() + b"\n",
    "types": b"/nowhere\n" + json.dumps({**WHOLE, "socket": 5, "pid": "x"}).encode() + b"\n",
    "a zero in the path": b"/a\0b\n" + json.dumps({**WHOLE, "socket": "/a\0b"}).encode() + b"\n",
    "a number of no process": b"/nowhere\n" + json.dumps({**WHOLE, "pid": -1}).encode() + b"\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("junk", JUNK)
def test_junk_in_the_lock_file_is_replaced(live: Live, junk: str) -> None:
    (live.folder / ".rookery" / "run").mkdir()
    write_lock(live.root, JUNK[junk])
    assert live.run("daemon", "status", "--json").data["is_running"] is False
    ran = live.run("task", "create", "one", "--json")
    assert (ran.data["title"], ran.err) == ("one", b"")
    assert live.log().count("serving") == 1


def is_denied_and_reported(live: Live, bee: Agent) -> None:
    """Commands of people run, and say with one line that no daemon does it; no tool runs."""
    ran = live.run("task", "create", "one", "--json")
    assert ran.data["title"] == "one"
    assert ran.err.count(b"\n") == 1
    assert ran.err.endswith(b"; running in this process instead\n")
    assert live.hook("pre-tool", FINE, bee.env).status == 2


@pytest.mark.slow
def test_a_lock_that_is_held_by_one_who_does_not_listen(live: Live) -> None:
    bee = Agent(live.folder, "bee")
    (live.folder / ".rookery" / "run").mkdir()
    with lock_held(live.root, fcntl.LOCK_EX):
        is_denied_and_reported(live, bee)
        assert address.read_address(live.root) is None
    assert live.run("task", "list", "--json").err == b""


def test_those_who_wait_for_their_turn_do_not_wait_for_a_dead_daemon_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    pauses: list[float] = []
    monkeypatch.setattr(start, "check_state", lambda _: None)  # which waits for git

    def wait_for_turn(_lock: int) -> None:
        nonlocal now
        now += 2.5

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds
        pauses.append(seconds)

    monkeypatch.setattr("rookery.daemon.start._take", wait_for_turn)
    monkeypatch.setattr("rookery.daemon.start.time.monotonic", lambda: now)
    monkeypatch.setattr("rookery.daemon.start.time.sleep", pause)
    (project / ".rookery" / "run").mkdir()
    with lock_held(str(project), fcntl.LOCK_EX), pytest.raises(start.CannotStart, match="does not answer"):
        start.start_daemon(str(project))
    assert pauses == []


@pytest.mark.slow
def test_a_queue_that_is_full(live: Live) -> None:
    bee = Agent(live.folder, "bee")
    live.run("task", "list")
    daemon = live.identity
    live.kill(signal.SIGSTOP)
    lines = []
    try:
        while True:
            line = socket.socket(socket.AF_UNIX)
            lines.append(line)
            line.setblocking(False)
            try:
                line.connect(live.place.socket)
            except BlockingIOError:
                break
        assert len(lines) > 200
        is_denied_and_reported(live, bee)
    finally:
        for line in lines:
            line.close()
        live.kill(signal.SIGCONT)
    wait_until(lambda: live.run("task", "list", "--json").err == b"")
    assert live.identity == daemon


def test_a_queue_that_was_full_for_a_moment_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        monkeypatch.setattr("rookery.client.connection.time.sleep", lambda _: listener.accept()[0].close())
        Connection(path.encode()).close()


@pytest.mark.slow
def test_the_folder_of_the_socket_may_be_removed(tmp_path: Path, project: Path) -> None:
    """As `XDG_RUNTIME_DIR` is when its user logs out."""
    folder = tmp_path / ("long" * 20) / ("path" * 10)
    folder.parent.mkdir(parents=True)
    project.rename(folder)
    live = Live(folder)
    with tempfile.TemporaryDirectory(dir="/tmp") as near:
        env = {"XDG_RUNTIME_DIR": f"{near}/1000"}
        try:
            assert live.run("task", "create", "one", "--json", env=env).err == b""
            first = live.identity
            shutil.rmtree(f"{near}/1000")
            ran = live.run("task", "list", "--json", env=env)
            assert (len(ran.data), ran.err) == (1, b"")
            assert live.identity != first
            wait_until(lambda: not is_alive(first))
        finally:
            live.close()


def test_a_folder_for_sockets_that_cannot_be_made_is_not_used() -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        path = address.socket_path("/" + "x" * 200, file.name)
    assert path.startswith(f"/tmp/rookery-{os.getuid()}/")


def as_another_user(script: str, *words: str) -> subprocess.Popen[bytes]:
    """A process of another user."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", f"import _socket, posix; posix.setuid({NOBODY}){script}", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may use."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o777)
        yield Path(name)


_CONNECT = """
import _socket, sys
line = _socket.socket(_socket.AF_UNIX)
line.connect(sys.argv[1])
sys.stdout.buffer.write(b"got " + line.recv(10))
"""
_LISTEN = """
import _socket, sys
line = _socket.socket(_socket.AF_UNIX)
line.bind(sys.argv[1])
line.listen(5)
sys.stdout.buffer.write(b"here\\n")
sys.stdout.flush()
while True:  # whatever it is asked, it was done
    number, _ = line._accept()
    asked = _socket.socket(fileno=number)
    try:
        asked.recv(1 << 20)
        asked.send(bytes.fromhex(sys.argv[2]))
    except OSError:
        continue
"""


@needs_root
@pytest.mark.slow
def test_another_user_is_not_served(project: Path, open_folder: Path) -> None:
    daemon = OwnDaemon(str(project))
    try:
        daemon.daemon.listen(str(open_folder / "s"))
        os.chmod(open_folder / "s", 0o666)
        with as_another_user(_CONNECT, str(open_folder / "s")) as caller:
            assert caller.communicate(timeout=30)[0] == b"got "
        wait_until(lambda: daemon.log == [f"a call was dropped: it is user {NOBODY}"])
    finally:
        daemon.close()


@needs_root
@pytest.mark.slow
def test_the_daemon_of_another_user_gets_no_request(live: Live, open_folder: Path) -> None:
    bee = Agent(live.folder, "bee")
    (live.folder / ".rookery" / "run").mkdir()
    path = str(open_folder / "s")
    write_lock(live.root, f"{path}\n{json.dumps({**WHOLE, 'socket': path})}\n".encode())
    answer = frames.pack(frames.TAKEN) + frames.pack(frames.EXIT, b"0")
    with as_another_user(_LISTEN, path, answer.hex()) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"here\n"
        try:
            is_denied_and_reported(live, bee)
        finally:
            other.kill()
    Path(address.lock_path(live.root)).unlink()
