"""Hooks: a process at every tool call, beside an interpreter that does nothing; and sixteen agents at once."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

from bench.agents import make_repository
from bench.cold import program_words
from bench.project import Size
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.runtimes.hooks import hook_command
from rookery.sandbox.probe import probe

_AGENTS = 16
_CALLS_A_SECOND = 2.0
_SCRIPT = "```rook-script\n- hang: true\n```"
_PLACES = {"plain": "off", "sandbox": "on"}
_BASH = {"command": "cd src && git status --short && grep -rn 'cp ' . | head -20"}
_EVENTS: dict[str, tuple[str, dict[str, Any], float]] = {
    "log after a tool call": (
        "post-tool",
        {"tool_name": "Bash", "tool_input": _BASH, "tool_response": {"stdout": "M a.py\n" * 20}, "duration_ms": 40},
        2.0,
    ),
    "mail check at a prompt": ("prompt", {"prompt": "Go on."}, 2.0),
    "guard before Read": ("pre-tool", {"tool_name": "Read", "tool_input": {"file_path": "src/a.py"}}, 3.0),
    "guard before Bash": ("pre-tool", {"tool_name": "Bash", "tool_input": _BASH}, 3.0),
}


def measure(root: str, size: Size) -> Table:
    """Every hook and the bare interpreter by turns, then all agents together; without a sandbox, and in it."""
    repo = os.path.join(os.path.dirname(root), "hooked")
    rook = program_words()
    many, seconds = (_AGENTS, 6.0) if size.rounds > 2 else (4, 1.0)
    notes = ["two processes a tool call: one before, one after; a headless agent has only the first"]
    figures: list[Figure] = []
    try:
        make_repository(repo, rook, files=50, tasks=2 * many, script=_SCRIPT)
        for place, mode in _PLACES.items():
            if mode == "on" and not probe().works:
                notes.append("in the sandbox it was not measured: bubblewrap does not work here")
                continue
            agents = _sling(repo, rook, mode, many)
            singles, baseline = _one_by_one(repo, place, agents[0], size.starts)
            took, bare = _together(repo, agents, seconds)
            p95 = percentile(took, 95)
            name = f"{place}: {many} agents, {_CALLS_A_SECOND:g} calls a second each, p95"
            figures += [*singles, Figure(name, p95, baseline, min(took), p95, most=60.0)]
            notes.append(f"{place}: {len(took)} hooks in {seconds:g} s, while a bare interpreter took {bare:.3g} ms")
    finally:
        _stop(repo, rook)
        shutil.rmtree(repo, ignore_errors=True)
    return Table("hooks", "python -I -S -c pass", tuple(figures), tuple(notes))


def _one_by_one(repo: str, place: str, agent: dict[str, str], rounds: int) -> tuple[list[Figure], float]:
    person = {name: value for name, value in agent.items() if not name.startswith("ROOKERY_")}
    events = {name: event for name, event in _EVENTS.items() if place == "plain" or event[0] != "prompt"}
    bare: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in events}
    for _ in range(rounds):
        for name, (event, payload, _aim) in events.items():
            bare.append(_fire([sys.executable, "-I", "-S", "-c", "pass"], b"", agent))
            # A headless agent's mail is in its prompt: the one whose mail is looked up is the person.
            environ = person if event == "prompt" else agent
            times[name].append(_fire(hook_command(event), _data(repo, payload), environ))
    baseline = statistics.median(bare)
    figures = [
        Figure(
            f"{place}: {name}",
            statistics.median(took),
            baseline,
            min(took),
            percentile(took, 95),
            most_ratio=events[name][2],
        )
        for name, took in times.items()
    ]
    return figures, baseline


def _together(repo: str, agents: list[dict[str, str]], seconds: float) -> tuple[list[float], float]:
    """Each agent asks before and tells after every call, on its own beat; how long each hook took."""
    took: list[float] = []
    bare: list[float] = []
    before, after = _EVENTS["guard before Bash"], _EVENTS["log after a tool call"]

    def live(number: int, environ: dict[str, str]) -> None:
        start = time.perf_counter() + number / len(agents) / _CALLS_A_SECOND
        for beat in range(round(seconds * _CALLS_A_SECOND)):
            time.sleep(max(0.0, start + beat / _CALLS_A_SECOND - time.perf_counter()))
            for event, payload, _aim in (before, after):
                took.append(_fire(hook_command(event), _data(repo, payload), environ))
            if number == 0:
                bare.append(_fire([sys.executable, "-I", "-S", "-c", "pass"], b"", environ))

    threads = [threading.Thread(target=live, args=pair) for pair in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took, statistics.median(bare)


def _fire(argv: Any, data: bytes, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(list(argv), input=data, env=environ, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def _data(repo: str, payload: dict[str, Any]) -> bytes:
    return json.dumps({"session_id": "x", "cwd": repo, "tool_use_id": "toolu_1"} | payload).encode()


def _sling(repo: str, rook: list[str], mode: str, many: int) -> list[dict[str, str]]:
    """Agents that hang in their first turn, and the environment that the program of each has."""
    with open(os.path.join(repo, ".rookery", "config.local.yaml"), "w") as file:
        file.write(f"agents:\n  max_concurrent: 100\n  stop_grace: 0.3s\nsandbox:\n  mode: {mode}\n")
    tasks = json.loads(_run(repo, [*rook, "task", "list", "--state", "PENDING", "--json"]))["data"]
    for task in tasks[:many]:
        _run(repo, [*rook, "sling", task["id"], "-q"])
    db = Database.open(database_path(repo))
    slung = db.all("SELECT id, agent FROM sessions ORDER BY seq DESC LIMIT ?", (many,))
    deadline = time.monotonic() + 120
    while db.value("SELECT count(*) FROM turns WHERE pid IS NOT NULL") < db.value("SELECT count(*) FROM sessions"):
        if time.monotonic() > deadline:
            raise SystemExit("agents did not begin their turns")
        time.sleep(0.1)
    db.close()
    return [_environ(repo, mode, session, agent) for session, agent in slung]


def _environ(repo: str, mode: str, session: str, agent: str) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    env |= {"ROOKERY_ROOT": repo, "ROOKERY_AGENT": agent, "ROOKERY_SESSION": session}
    if mode == "off":
        with open(os.path.join(repo, ".rookery", "sessions", session, "token"), encoding="ascii") as file:
            return env | {"ROOKERY_TOKEN": file.read()}
    with open(os.path.join(repo, ".rookery", "sessions", session, "sandbox.json"), encoding="utf-8") as file:
        path = os.path.join(json.load(file)["sockets"], "rook")
    deadline = time.monotonic() + 60
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.05)
    return env | {"ROOKERY_SOCKET": path}


def _stop(repo: str, rook: list[str]) -> None:
    for agent in json.loads(_run(repo, [*rook, "status", "--json"]))["data"]["agents"]:
        _run(repo, [*rook, "stop", agent["agent"], "-q"])


def _run(repo: str, argv: list[str]) -> bytes:
    return subprocess.run(argv, cwd=repo, check=True, stdout=subprocess.PIPE).stdout
