"""Calls through the daemon: a client each, beside an interpreter that does nothing; and what the daemon takes."""

from __future__ import annotations

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

import rookery
from bench.cold import program_words
from bench.project import Size
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.agents.reservation import Request, reserve
from rookery.base.clock import stamp
from rookery.client import frames
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.daemon.address import read_address
from rookery.daemon.hello import Hello, pack_hello
from rookery.daemon.start import start_daemon
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.sessions.credentials import CLIENT
from rookery.tasks import service
from rookery.tasks.store import Author

_AGENTS = 16
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(rookery.__file__)))
_BARE = [sys.executable, "-I", "-S", "-c", "pass"]
_CLIENT = [os.path.join(CLIENT, "rook")]
_HOOK = [
    *(sys.executable, "-I", "-S", "-c"),
    f"import sys; sys.path.insert(0, {_SOURCE!r}); from rookery.client.hook import main; main()",
]
_TOOL = json.dumps(
    {"session_id": "x", "tool_use_id": "t", "tool_name": "Bash", "tool_input": {"command": "git status --short"}}
).encode()


def measure(root: str, size: Size) -> Table:
    """Start it, call it one by one, all at once, ten thousand times, and let it idle."""
    program = program_words()
    is_full = size.rounds > 2
    started = time.perf_counter()
    path = start_daemon(root)
    start = (time.perf_counter() - started) * 1000
    place = read_address(root)
    assert place is not None
    try:
        task, env, agent = _prepare(root)
        figures = [Figure("start, until it takes calls", start, most=300)]
        figures += _one_by_one(root, program, task, env, agent, size.starts)
        lone = next(figure.measured for figure in figures if figure.name == "hook before Bash")
        figures += _together(root, agent, lone, 6.0 if is_full else 1.0)
        figures += _itself(root, path, place.pid, task, calls=10_000 if is_full else 500, idle=60 if is_full else 3)
    finally:
        subprocess.run([*program, "daemon", "stop"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    return Table("Calls through the daemon", "`python -I -S -c pass` in the same run", tuple(figures))


def _prepare(root: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """A task, and the environments of a person and of an agent."""
    db = Database.open(database_path(root))
    config = load_config(root, read_environ({}), {}).config
    task = service.create(db, service.Draft("bench"), Author("human", stamp(time.time()))).task.id
    session = reserve(Context.at(root, db, config), Request(task, "builder", "human", "0" * 40, name="bench"))
    db.execute("UPDATE sessions SET state = 'working', mode = 'tmux' WHERE id = ?", (session.id,))
    db.close()
    with open(os.path.join(root, ".rookery", "sessions", session.id, "token"), encoding="ascii") as file:
        token = file.read()
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ROOKERY_DAEMON": "on"}
    env["ROOKERY_PYTHON"] = sys.executable
    agent = {"ROOT": root, "AGENT": session.agent, "SESSION": session.id, "TOKEN": token}
    return task, env, env | {f"ROOKERY_{name}": value for name, value in agent.items()}


def _one_by_one(
    root: str, program: list[str], task: str, env: dict[str, str], agent: dict[str, str], repeat: int
) -> list[Figure]:
    def call(words: Sequence[str], environ: dict[str, str], data: bytes = b"") -> Callable[[], float]:
        return lambda: _milliseconds(words, root, environ, data)

    get = ["task", "get", task, "--json"]
    work = {
        "bare": call(_BARE, env),
        "fdatasync": lambda: _sync(root),
        "hook before Bash": call([*_HOOK, "pre-tool"], agent, _TOOL),
        "hook at a prompt": call([*_HOOK, "prompt"], agent, b"{}"),
        "task get --json": call([*_CLIENT, *get], env),
        "status --json": call([*_CLIENT, "status", "--json"], env),
        "mail check --json": call([*_CLIENT, "mail", "check", "--json"], env),
        "20 tasks, as a table": call([*_CLIENT, "task", "list", "--limit", "20"], env),
        "task update --json": call([*_CLIENT, "task", "update", task, "--priority", "2", "--json"], env),
        "mail send --json": call([*_CLIENT, "mail", "send", "human", "--subject", "x", "--json"], env),
        "task get --json, by pip's script": call([*program, *get], env),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeat + 1):
        for name, run in work.items():
            times[name].append(run())
    medians = {name: statistics.median(durations[1:]) for name, durations in times.items()}
    figures = []
    for name in list(work)[2:]:
        writes = name.startswith(("task update", "mail send"))
        baseline = medians["bare"] + (medians["fdatasync"] if writes else 0)
        aim = 1.6 if name.endswith("table") else 1.4
        is_pips = name.endswith("script")  # for people; it loads `site`
        figures.append(
            Figure(
                name,
                medians[name],
                baseline,
                best=min(times[name]),
                p95=percentile(times[name], 95),
                most_ratio=None if is_pips else aim,
            )
        )
    return [*figures, Figure("one fdatasync, counted to the writes' baseline", medians["fdatasync"])]


def _together(root: str, agent: dict[str, str], lone: float, seconds: float) -> list[Figure]:
    paced: list[float] = []

    def hook() -> float:
        return _milliseconds([*_HOOK, "pre-tool"], root, agent, _TOOL)

    def pace(number: int) -> None:
        due = time.monotonic() + number * 0.5 / _AGENTS
        end = due + seconds
        while due < end:
            time.sleep(max(0.0, due - time.monotonic()))
            paced.append(hook())
            due += 0.5

    _at_once(pace)
    hooks: list[float] = []
    bare: list[float] = []
    for _ in range(3):
        _at_once(lambda _number: bare.append(_milliseconds(_BARE, root, agent, b"")))
        _at_once(lambda _number: hooks.append(hook()))
    return [
        Figure("16 agents, a hook every 500 ms: p95, beside a lone one", percentile(paced, 95), lone, most_ratio=2.5),
        Figure("16 hooks at once: p95, beside 16 bare", percentile(hooks, 95), percentile(bare, 95), most_ratio=2.5),
    ]


def _at_once(work: Callable[[int], object]) -> None:
    begin = threading.Barrier(_AGENTS)

    def run(number: int) -> None:
        begin.wait()
        work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_AGENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _itself(root: str, path: str, pid: int, task: str, *, calls: int, idle: float) -> list[Figure]:
    words = [
        *(["task", "get", task, "--json"], ["task", "list", "--json"], ["mail", "check", "--json"]),
        *(
            ["task", "update", task, "--priority", "3", "--json"],
            ["status"],
            ["mail", "send", "human", "--subject", "x"],
        ),
    ]
    before = _resident(pid)
    for number in range(calls):
        _call(path, root, words[number % len(words)])
    after = _resident(pid)
    time.sleep(1)  # until the last call has been cleared away
    busy = _processor(pid)
    time.sleep(idle)
    a_minute = (_processor(pid) - busy) * 60 / idle
    return [
        Figure("resident", before / 1e6, unit="MB", most=45),
        Figure(f"growth after {calls:,} mixed calls", (after - before) / 1e6, unit="MB", most=15),
        Figure("processor time a minute when idle", a_minute * 1000, most=20),
    ]


def _call(path: str, root: str, words: list[str]) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    hello = Hello(frames.RUN, root, 0o022, (False, False, False), (80, 24), "utf-8", words, env)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        line.sendall(pack_hello(hello))
        while line.recv(65536):
            pass


def _milliseconds(argv: Sequence[str], root: str, env: dict[str, str], data: bytes) -> float:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        started = time.perf_counter()
        subprocess.run(argv, cwd=root, env=env, stdin=file, stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - started) * 1000


def _sync(root: str) -> float:
    """How long the disk takes for what a commit waits for."""
    with open(os.path.join(root, ".rookery", "sync"), "ab") as file:
        file.write(b"x" * 4096)
        file.flush()
        started = time.perf_counter()
        os.fdatasync(file.fileno())
        return (time.perf_counter() - started) * 1000


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _processor(pid: int) -> float:
    """Seconds that the process has computed, threads that have ended included, as its own clock of the kernel says."""
    return time.clock_gettime(~pid << 3 | 2)
