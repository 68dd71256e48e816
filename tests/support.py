"""What tests of every part use: `rook` as a real process, tasks made in a line, the whole state to compare."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import results
import rookery
from daemons import OwnDaemon, workers_of
from forkserver import ForkServer
from rookery.base.clock import seconds_of
from rookery.base.errors import RookError
from rookery.config.project import database_path, find_root
from rookery.daemon.routing import THREAD, route
from rookery.ops.context import Context
from rookery.sessions.credentials import MARK
from rookery.tasks import service
from rookery.tasks.store import Author

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conftest import Rook
    from rookery.db.database import Database

IN_DAEMON = os.environ.get("ROOKERY_TESTS_IN") == "daemon"
"""The suite runs short commands in a daemon's threads instead of processes."""
own_daemons: dict[str, OwnDaemon] = {}
"""Those of the test that runs, by root."""
commands: list[Sequence[str | bytes]] = []
"""The words of the commands that the current test has run by `run_rook`."""

SOURCE = str(Path(rookery.__file__).parents[1].resolve())
_UNWANTED = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
"""A child starts and buffers as it does for people."""
_BYTECODE = os.path.join(tempfile.gettempdir(), f"rookery-tests-{os.getuid()}")
NOW = "2026-01-31T12:00:00.000Z"
AUTHOR = Author("human", NOW)


class Ran(NamedTuple):
    """How a `rook` process ended."""

    status: int
    out: bytes
    err: bytes

    @property
    def envelope(self) -> dict[str, Any]:
        """The one line of JSON that standard output must be."""
        assert self.out.endswith(b"\n"), self
        assert self.out.count(b"\n") == 1, self
        envelope = json.loads(self.out)
        assert isinstance(envelope, dict)
        assert envelope["v"] == 1
        assert isinstance(envelope["ok"], bool)
        return envelope

    @property
    def data(self) -> Any:
        """What a command that went well gives."""
        assert self.status == 0, self
        assert self.envelope["ok"] is True
        return self.envelope["data"]

    @property
    def error(self) -> dict[str, str]:
        """What a refused command says."""
        assert self.status != 0, self
        assert self.envelope["ok"] is False
        assert b"Traceback" not in self.err
        error: dict[str, str] = self.envelope["error"]
        return error


def child_environ(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child that runs the code under test, wherever it stands."""
    own = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    return own | {"PYTHONPATH": SOURCE, "PYTHONPYCACHEPREFIX": _BYTECODE} | dict(env or {})


def rook_argv(*args: str | bytes) -> list[str | bytes]:
    """The words that start `rook`."""
    return [sys.executable, "-m", "rookery", *args]


def run_rook(
    folder: Path, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None, timeout: float = 60
) -> Ran:
    """Run `rook` to its end: in a daemon within this process if the suite runs so and the command is short.

    Else as a process of its own, which is a copy of one that has everything loaded.
    """
    commands.append(args)
    whole = child_environ(env)
    server = _fork_server()
    if IN_DAEMON and server.can_run(whole):
        ran = _run_in_daemon(folder, [os.fsdecode(arg) for arg in args], whole, stdin, timeout)
        if ran is not None:
            return ran
    if MARK in whole or not server.can_run(
        whole
    ):  # a mark is looked for in /proc, which shows the server's environment
        return run_real_rook(folder, *args, stdin=stdin, env=env, timeout=timeout)
    return Ran(*server.run([os.fsdecode(arg) for arg in args], str(folder), whole, stdin, timeout))


def _run_in_daemon(folder: Path, words: list[str], env: Mapping[str, str], stdin: bytes, timeout: float) -> Ran | None:
    """The same in a daemon's thread; None if the command cannot run in a thread.

    What is meant to kill the process that runs it goes to a daemon of its own, and ends as if that were the caller.
    """
    if "ROOKERY_TEST_KILL" in env:
        ran = run_real_rook(folder, *words, stdin=stdin, env={**env, "ROOKERY_DAEMON": "on"}, timeout=timeout)
        is_dead = b"the daemon stopped while it ran this" in ran.err + ran.out
        return ran._replace(status=-signal.SIGKILL) if is_dead else ran
    try:
        root = find_root(str(folder), env.get("ROOKERY_ROOT"))
    except RookError:
        return None
    if route(words, str(folder), root)[0] != THREAD:
        return None
    if root not in own_daemons:
        own_daemons[root] = OwnDaemon(root)
    result = own_daemons[root].run(words, folder, env, stdin, timeout)
    assert result is not None
    return Ran(*result)


def run_real_rook(
    folder: Path, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None, timeout: float = 60
) -> Ran:
    """The same with an interpreter of its own, for tests of how a process starts and ends."""
    done = subprocess.run(
        rook_argv(*args),
        cwd=folder,
        env=child_environ(env),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode == 0 and "--json" in args:
        results.check_printed([word if isinstance(word, str) else os.fsdecode(word) for word in args], done.stdout)
    return Ran(done.returncode, done.stdout, done.stderr)


@cache
def _fork_server() -> ForkServer:
    return ForkServer({name: value for name, value in child_environ().items() if not name.startswith("ROOKERY_")})


INTERRUPTS = {"INTERRUPT": 130, "VANISH": -signal.SIGKILL}
"""How a caller ends whose operation is interrupted right after a step: by Ctrl-C in its terminal, or its own death."""


def run_interrupted(folder: Path, how: str, step: str, *args: str) -> None:
    """Run `rook` through its daemon, interrupt it, and wait until the process that ran it has ended."""
    ran = run_real_rook(folder, *args, env={"ROOKERY_DAEMON": "on", f"ROOKERY_TEST_{how}": step})
    assert ran.status == INTERRUPTS[how], (step, ran)
    wait_until(lambda: not workers_of(folder))


def start_rook(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start `rook` and leave it running; the caller collects it."""
    return subprocess.Popen(
        rook_argv(*args), cwd=folder, env=child_environ(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def die_at(step: str, argv: Sequence[str | bytes], folder: Path, pass_fds: Sequence[int] = ()) -> None:
    """Run a program of ours that kills itself right after a step."""
    done = subprocess.run(
        argv,
        cwd=folder,
        env=child_environ({"ROOKERY_TEST_KILL": step}),
        pass_fds=pass_fds,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, (step, done)


def start_python(script: str, *args: str) -> subprocess.Popen[bytes]:
    """Start a process that uses the code under test; it ends when its standard input does, if it reads that."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *args],
        env=child_environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_together(children: list[subprocess.Popen[bytes]]) -> list[str]:
    """Let children that wait for a line begin at the same moment; what each of them printed."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n", child.stderr and child.stderr.read()
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    outputs = [child.communicate(timeout=60) for child in children]
    for child, (_, err) in zip(children, outputs, strict=True):
        assert child.returncode == 0, err.decode()
    return [out.decode() for out, _ in outputs]


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Return as soon as it holds; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.005)


_LAST_SESSION = "SELECT state, outcome FROM sessions WHERE agent = ? ORDER BY created_at DESC LIMIT 1"


def wait_for_agent(rook: Rook, name: str, states: Sequence[str], seconds: float = 60) -> None:
    """Wait until the last session of an agent is in one of the states or has one of the outcomes.

    The row says so. Now and then a command is run, as people do: it sees to what was left behind.
    """
    db = rook.open()
    deadline = time.monotonic() + seconds
    next_look = time.monotonic() + 1
    try:
        while True:
            row = db.one(
                "SELECT state, outcome FROM sessions WHERE agent = ? ORDER BY created_at DESC LIMIT 1", (name,)
            )
            if row is not None and not {*row}.isdisjoint(states):
                return
            assert time.monotonic() < deadline, f"{name} is {row}"
            if time.monotonic() > next_look:
                rook("loop", "run")
                next_look = time.monotonic() + 1
            time.sleep(0.01)
    finally:
        db.close()


def everyone(overview: dict[str, Any]) -> list[dict[str, Any]]:
    """All agents that `rook status --all` shows, those that have ended too."""
    return [*overview["agents"], *overview["ended"]]


def add(db: Database, title: str = "work", parent: str | None = None, now: str = NOW, **more: Any) -> str:
    """Make a task and return its id."""
    return service.create(db, service.Draft(title, parent=parent, **more), Author("human", now)).task.id


def person_at(db: Database, now: str = NOW) -> Context:
    """What an operation runs in that a person calls."""
    return Context.at(str(Path(db.path).parent), db, clock=lambda: seconds_of(now))


def refusal(run: Callable[[], object]) -> str:
    """The code with which something is refused."""
    with pytest.raises(RookError) as caught:
        run()
    assert caught.value.exit_status == 1
    return caught.value.code


def touch_database(root: Path) -> None:
    """Make a folder look like a project: without a database no part of its state is made."""
    path = Path(database_path(str(root)))
    path.parent.mkdir(exist_ok=True)
    path.touch()


def everything(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """The whole stored state, events included."""
    tables = {"tasks": "seq", "task_blockers": "task_id, blocker_id", "learnings": "seq", "events": "seq"}
    return {table: db.all(f"SELECT * FROM {table} ORDER BY {order}") for table, order in tables.items()}


def manifest(*places: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Every path in the places with its kind, mode and content, except those under `without`."""
    entries = {}
    for place in places:
        for folder, names, files in os.walk(place):
            names[:] = [name for name in names if not os.path.join(folder, name).startswith(without or ("\0",))]
            for name in [*names, *files]:
                path = os.path.join(folder, name)
                if not path.startswith(without or ("\0",)):
                    entries[path] = _describe(path)
    return entries


def _describe(path: str) -> str:
    status = os.lstat(path)
    if os.path.islink(path):
        return f"link {os.readlink(path)}"
    content = ""
    if os.path.isfile(path):
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return f"{status.st_mode:o} {status.st_uid} {status.st_nlink if content else ''} {content}"


def write_role(root: Path | str, name: str, front: str = "", prompt: str = "") -> Path:
    """A role of the project's own: its front matter, and its prompt below that."""
    path = Path(root, ".rookery", "roles", f"{name}.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front}\n---\n{prompt}")
    return path
