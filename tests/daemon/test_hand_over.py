"""One daemon after another: which code replaces it, what it has loaded by then, and how it leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from live import Live
from live import live as live

from agent_rows import Agent
from daemons import OwnDaemon, hello, receive
from rookery.base.call import sleep
from rookery.client import frames
from rookery.daemon import calls, clients, fingerprint, main
from rookery.daemon.fingerprint import Fingerprint
from rookery.db import pool
from rookery.ops import index
from rookery.processes.proctree import is_alive
from support import SOURCE, child_environ, wait_until

SECOND = 10**9


@pytest.mark.parametrize(("change", "is_newer"), [(-5, False), (0, False), (5, True)])
def test_only_code_that_is_strictly_newer_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int, is_newer: bool
) -> None:
    monkeypatch.setattr(fingerprint, "_LOOK_AGAIN", -1.0)
    file = tmp_path / "rookery" / "a.py"
    file.parent.mkdir()
    file.touch()
    os.utime(file, ns=(100 * SECOND, 100 * SECOND))
    code = Fingerprint(str(tmp_path))
    os.utime(file, ns=(0, (100 + change) * SECOND))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.py").touch()  # compiled later, of the same code
    assert code.is_outdated() is is_newer


@pytest.mark.parametrize("how", ["write", "replace", "add", "folder"])
def test_the_system_reports_a_change_so_that_no_file_is_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(fingerprint, "_LOOK_AGAIN", -1.0)
    looks: list[str] = []
    code = tmp_path / "code"
    (code / "inner").mkdir(parents=True)
    file = code / "inner" / "a.py"
    file.write_text("old")
    os.utime(file, (100, 100))
    watched = Fingerprint(str(code))
    watched.watch()
    assert not watched.is_outdated()  # what changed before it was watched is seen by the first look
    newest = fingerprint.newest_change

    def note(folder: str) -> int:
        looks.append(folder)
        return newest(folder)

    monkeypatch.setattr(fingerprint, "newest_change", note)
    assert not watched.is_outdated()
    assert looks == []
    if how == "write":
        file.write_text("new")
    elif how == "replace":
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").rename(file)
    elif how == "add":
        (code / "b.py").write_text("new")
    else:
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "b.py").write_text("new")
        (tmp_path / "package").rename(code / "package")
    assert watched.is_outdated()
    assert looks[0] == str(code)


def test_in_the_middle_of_an_upgrade_nothing_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_LOOK_AGAIN", -1.0)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").touch()
    code = Fingerprint(str(tmp_path / "code"))
    shutil.rmtree(tmp_path / "code")
    assert not code.is_outdated()


@pytest.mark.slow
def test_a_caller_with_older_code_does_not_replace_it(live: Live, tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(SOURCE, older, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in older.rglob("*.py"):
        os.utime(file, (1, 1))
    live.run("task", "create", "one")
    daemon = live.identity
    for _ in range(2):
        assert len(live.run("task", "list", "--json", source=str(older)).data) == 1
    assert live.identity == daemon
    assert is_alive(daemon)


# Serves calls as the daemon does, in its own process, and reports what each of them loads.
_PROBE = """
import json, os, socket, sys, threading
tests, source = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, source)
from rookery.daemon import main
from rookery.daemon.server import Daemon
serve = Daemon.serve

def probe(daemon):
    sys.path.insert(0, tests)
    from pathlib import Path
    from daemons import hello, _converse
    from rookery.client import frames
    late = {}
    threading.Thread(target=serve, args=(daemon,), daemon=True).start()
    for kind, words, env, terminals in json.load(sys.stdin):
        before = set(sys.modules)
        ours, theirs = socket.socketpair()
        daemon.adopt(theirs)
        begin = hello(kind.encode(), words, Path(daemon.root), env, terminals=terminals.encode())
        ours.sendall(begin + (frames.pack(frames.INPUT, b"{}") if kind == "hook" else b""))
        ended = _converse(ours, b"")
        assert ended is not None, words
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            is_library = "site-packages" in file and not name.startswith("rich._")  # tables of signs
            if name.startswith("rookery") or is_library:
                late.setdefault(name, " ".join(words))
    print(json.dumps(late), flush=True)

Daemon.serve = probe
main.main()
"""
_CALLS = (
    *("task list", "task create x", "task nonsense", "task get nothing", "epic list", "learning list", "mail check"),
    *("mail send human --subject x --body y", "mail list", "group list", "status", "inspect bee", "agents show bee"),
    *("logs", "trace bee", "errors", "costs", "metrics", "events", "prime", "config show", "nonsense", "--version"),
    *("config explain tasks.lease", "run list", "merge list", "gate list", "hooks status", "guard explain ls"),
    *("", "--help", "task", "spec show bee"),
)


@pytest.mark.slow
def test_no_call_loads_a_module_when_it_is_ready(project: Path) -> None:
    """Files are replaced under a living daemon: what it loads then may be of another version."""
    bee = Agent(project, "bee")
    (project / ".rookery" / "run").mkdir()
    short = [operation for group in index.GROUPS for operation in index.load_group(group) if not operation.long]
    words = [[*operation.name.split(), "--help"] for operation in short] + [line.split() for line in _CALLS]
    asked: list[Any] = []
    for command in words:
        env = child_environ()
        asked += [("run", command, env, "000"), ("run", command, env, "011"), ("run", [*command, "--json"], env, "000")]
    events = ("session-start", "prompt", "pre-tool", "post-tool", "stop", "notification", "session-end")
    asked += [("hook", [event], child_environ(bee.env), "000") for event in events]
    asked += [("hook", [event], child_environ(), "000") for event in events]
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PROBE, str(Path(__file__).parents[1]), SOURCE, str(project)],
        cwd=project,
        env=child_environ(),
        input=json.dumps(asked).encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == {}


@pytest.fixture
def daemon(project: Path) -> Iterator[OwnDaemon]:
    own = OwnDaemon(str(project))
    yield own
    own.close()


def test_one_that_has_grown_large_leaves_when_it_is_idle(daemon: OwnDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < main._resident() < main._MOST_BYTES * 10
    monkeypatch.setattr(main, "_resident", lambda: 150 * 1024 * 1024)
    main._leave_if_idle(daemon.daemon)
    assert daemon.log == []
    monkeypatch.setattr(main, "_resident", lambda: 150 * 1024 * 1024 + 1)
    with daemon.connect() as line:
        line.sendall(frames.CALL)  # a call is under way
        wait_until(lambda: daemon.daemon.is_busy)
        main._leave_if_idle(daemon.daemon)
        assert daemon.log == []
    wait_until(lambda: not daemon.daemon.is_busy)
    main._leave_if_idle(daemon.daemon)
    assert daemon.log == ["leaving: it has grown large, and the next one starts small"]


def test_it_looks_at_least_every_minute(daemon: OwnDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a suspend or a change of the clock nothing wakes it."""
    looks: list[float] = []

    def look() -> float:
        looks.append(0)
        return 3600.0

    daemon.daemon.on_look = look
    daemon.daemon.look()
    wait_until(lambda: looks and daemon.daemon._look_at)
    assert 0 < daemon.daemon._look_at - time.monotonic() <= 60


def test_few_connections_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    opened = [apsw.Connection(path) for _ in range(12)]
    kept = pool.Pool()
    for connection in opened:
        kept.keep(path, kept.identify(path), connection)
    assert sum(kept.take(path) is not None for _ in range(12)) == 8
    kept.close()
    for connection in opened:
        connection.close()


class Held:
    """An operation in the daemon that runs until the test ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_stubborn: bool = False) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self._is_stubborn = is_stubborn
        monkeypatch.setattr(calls, "main", self._run)
        monkeypatch.setattr(calls, "answer", lambda *_: (self._run([]), "", ""))

    def _run(self, _words: list[str]) -> int:
        self.begun.set()
        while not self.go.is_set():
            if self._is_stubborn:
                self.go.wait(0.01)
            else:
                sleep(0.01)
        return 5


@pytest.fixture
def drains(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a daemon that leaves has waited for its calls, each time; in the test that time is short."""
    assert clients._DRAIN_SECONDS <= 5
    waited: list[float] = []
    wait = clients.Clients._wait
    monkeypatch.setattr(clients, "_DRAIN_SECONDS", 0.02)
    monkeypatch.setattr(clients, "_CUT_SECONDS", 0.02)

    def note(calls: clients.Clients, seconds: float) -> bool:
        waited.append(seconds)
        return wait(calls, seconds)

    monkeypatch.setattr(clients.Clients, "_wait", note)
    return waited


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_what_takes_longer_than_the_drain_is_interrupted(
    daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch, drains: list[float], is_stubborn: bool
) -> None:
    held = Held(monkeypatch, is_stubborn=is_stubborn)
    with daemon.connect() as line:
        line.settimeout(20)
        line.sendall(hello(frames.RUN, ["task", "list"], project, child_environ()))
        assert held.begun.wait(20)
        assert receive(line)[0] == frames.TAKEN
        daemon.daemon.stop("the test says so")
        assert receive(line) == ((b"", b"") if is_stubborn else (frames.EXIT, b"130"))
    daemon._thread.join(20)
    assert not daemon._thread.is_alive()
    assert drains[0] == 0.02
    held.go.set()


@pytest.mark.parametrize("event", ["stop", "pre-tool"])
def test_a_hook_is_answered_whole_though_the_daemon_leaves(
    daemon: OwnDaemon, project: Path, monkeypatch: pytest.MonkeyPatch, drains: list[float], event: str
) -> None:
    """The program would take an interrupted one for answered: a stop without its snapshot."""
    held = Held(monkeypatch)
    with daemon.connect() as line, daemon.connect() as later:
        line.settimeout(20)
        later.settimeout(20)
        line.sendall(hello(frames.HOOK, [event], project, child_environ()) + frames.pack(frames.INPUT, b"{}"))
        assert receive(line)[0] == frames.TAKEN
        assert held.begun.wait(20)
        daemon.daemon.stop("the test says so")
        wait_until(lambda: len(drains) > 3)
        # One that comes now is the next daemon's.
        later.sendall(hello(frames.HOOK, [event], project, child_environ()) + frames.pack(frames.INPUT, b"{}"))
        assert receive(later)[0] == frames.AGAIN
        held.go.set()
        assert receive(line) == (frames.EXIT, b"5")
