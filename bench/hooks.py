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

from bench.agents import make_repository
from bench.cold import program_words
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.runtimes.hooks import hook_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bench.project import Size

_AGENTS = 16
_CALLS_A_SECOND = 2.0
_SCRIPT = "```rook-script\n- wait: mail\n```"
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
    """Every hook and the bare interpreter by turns; then all agents together."""
    repo = os.path.join(os.path.dirname(root), "hooked")
    rook = program_words()
    try:
        make_repository(repo, rook, files=50, tasks=_AGENTS, script=_SCRIPT)
        agents = _sling(repo, rook)
        person = {name: value for name, value in agents[0].items() if not name.startswith("ROOKERY_")}
        figures, baseline = _one_by_one(repo, agents[0], person, size.starts)
        seconds = 6.0 if size.rounds > 2 else 2.0
        took, bare = _together(repo, agents, seconds)
        figures.append(
            Figure(
                f"{_AGENTS} agents, {_CALLS_A_SECOND:g} calls a second each: p95 of a hook",
                percentile(took, 95),
                baseline,
                min(took),
                percentile(took, 95),
                most=60.0,
            )
        )
    finally:
        shutil.rmtree(repo, ignore_errors=True)
    return Table(
        "hooks",
        "python -I -S -c pass",
        tuple(figures),
        (
            "two processes a tool call: one before, one after",
            f"{len(took)} hooks in {seconds:g} s; the bare interpreter under the same load took {bare:.3g} ms",
        ),
    )


def _one_by_one(repo: str, agent: dict[str, str], person: dict[str, str], rounds: int) -> tuple[list[Figure], float]:
    bare: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in _EVENTS}
    for _ in range(rounds):
        for name, (event, payload, _aim) in _EVENTS.items():
            bare.append(_fire([sys.executable, "-I", "-S", "-c", "pass"], b"", agent))
            # A headless agent's mail is in its prompt: the one whose mail is looked up is the person.
            environ = person if event == "prompt" else agent
            times[name].append(_fire(hook_command(event), _data(repo, payload), environ))
    baseline = statistics.median(bare)
    figures = [
        Figure(name, statistics.median(took), baseline, min(took), percentile(took, 95), most_ratio=_EVENTS[name][2])
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


def _sling(repo: str, rook: list[str]) -> list[dict[str, str]]:
    """Agents that wait, and the environment that the program of each would have."""
    found = []
    tasks = json.loads(_run(repo, [*rook, "task", "list", "--json"]))["data"]
    for task in tasks:
        _run(repo, [*rook, "sling", task["id"], "-q"])
    db = Database.open(database_path(repo))
    for session, agent in db.all("SELECT id, agent FROM sessions ORDER BY seq"):
        with open(os.path.join(repo, ".rookery", "sessions", session, "token"), encoding="ascii") as file:
            token = file.read()
        found.append(
            {
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                "ROOKERY_ROOT": repo,
                "ROOKERY_AGENT": agent,
                "ROOKERY_SESSION": session,
                "ROOKERY_TOKEN": token,
            }
        )
    deadline = time.monotonic() + 120
    while db.value("SELECT count(*) FROM sessions WHERE state <> 'waiting'") and time.monotonic() < deadline:
        time.sleep(0.1)
    db.close()
    return found


def _run(repo: str, argv: list[str]) -> bytes:
    return subprocess.run(argv, cwd=repo, check=True, stdout=subprocess.PIPE).stdout
