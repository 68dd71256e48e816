"""The real Claude Code in tmux: from `rook sling` to an agent that has its task, beside the program's own start."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time

import yaml
from dev.model_server import ModelServer

from bench.agents import make_repository
from bench.cold import program_words
from bench.project import Size
from bench.table import Figure, Table
from rookery.config.environ import child_environ
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.runtimes import claude
from rookery.terminal.tmux import Tmux, socket_path

_OURS = os.path.abspath(".dev/claude/node_modules/.bin/claude")
_SCRIPT = "```model-script\n- say: ready\n```"
_MORE = 500.0
_TITLE = "Claude Code in tmux"
_BASELINE = "the program's own start to its prompt, with the same answers to its dialogs"


def measure(root: str, size: Size) -> Table:
    """By turns, on a repository of its own."""
    program = _OURS if os.path.exists(_OURS) else shutil.which("claude")
    if program is None or shutil.which("tmux") is None:
        return Table(_TITLE, _BASELINE, (), ("not measured: Claude Code or tmux is missing (dev/claude.sh gets it)",))
    repo = os.path.join(os.path.dirname(root), "terminal")
    rook = program_words()
    rounds = min(size.rounds, 5)
    try:
        with ModelServer() as server:
            make_repository(repo, rook, files=50, tasks=rounds + 1, script=_SCRIPT)
            config = {
                "agents": {"runtime": "claude"},
                "claude": {"program": program, "env": dict(server.environ), "share_login": False},
                "sandbox": {"mode": "off"},
            }
            with open(os.path.join(repo, ".rookery", "config.local.yaml"), "w") as file:
                yaml.safe_dump(config, file)
            slung, bare = [], []
            _sling(repo, rook, rounds)  # the first start of all fills the machine's caches
            for number in range(rounds):
                bare.append(_start(repo, program, server.environ, number))
                slung.append(_sling(repo, rook, number))
    finally:
        Tmux(socket_path(repo)).kill_server()
        shutil.rmtree(repo, ignore_errors=True)
    baseline = statistics.median(bare)
    return Table(
        _TITLE,
        _BASELINE,
        (Figure("sling --tmux", statistics.median(slung), baseline, min(slung), most=baseline + _MORE),),
        ("until the agent has its task, which its prompt hook confirms; without the sandbox",),
    )


def _sling(repo: str, rook: list[str], number: int) -> float:
    db = Database.open(database_path(repo))
    task = str(db.value("SELECT id FROM tasks WHERE title = ?", (f"Task {number}",)))
    db.close()
    started = time.perf_counter()
    subprocess.run([*rook, "sling", task, "--tmux", "--name", f"bee{number}", "-q"], cwd=repo, check=True)
    took = (time.perf_counter() - started) * 1000
    subprocess.run([*rook, "stop", f"bee{number}", "-q"], cwd=repo, check=True)
    return took


def _start(repo: str, program: str, environ: dict[str, str], number: int) -> float:
    """The program alone, in a terminal on the same server, with the folder that Rookery wrote for an agent."""
    tmux, name = Tmux(socket_path(repo)), f"bare{number}"
    session, agent = _newest(repo)
    folder = os.path.join(repo, ".rookery", "sessions", session, "runtime", "claude")
    env = child_environ() | environ | {"CLAUDE_CONFIG_DIR": folder, "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1"}
    worktree = os.path.join(repo, ".rookery", "worktrees", agent)
    started = time.perf_counter()
    tmux.new_session(name, worktree, (program,), env)
    deadline = time.monotonic() + 60
    while not claude.is_ready(tmux.capture(name)) and time.monotonic() < deadline:
        time.sleep(0.02)
    took = (time.perf_counter() - started) * 1000
    tmux.kill(name)
    return took


def _newest(repo: str) -> tuple[str, str]:
    """The session and the name of the agent that was slung last."""
    db = Database.open(database_path(repo))
    try:
        session, agent = db.all("SELECT id, agent FROM sessions ORDER BY seq DESC LIMIT 1")[0]
        return str(session), str(agent)
    finally:
        db.close()
