"""Agents: what a sling costs beside a bare `git worktree add`, and what fifty waiting agents cost."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time

from bench.cold import program_words
from bench.project import Size
from bench.table import Figure, Table
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes.proctable import pids_with, read_all

_FILES = 3000
_WAITING = 50
_MORE = 150.0
_SCRIPT = "```rook-script\n- wait: mail\n```"
_PATIENCE = 300.0


def measure(root: str, size: Size) -> Table:
    """On a repository of its own, with 3,000 files."""
    repo = os.path.join(os.path.dirname(root), "swarm")
    rook = program_words()
    many = _WAITING if size.rounds > 2 else 5
    try:
        make_repository(repo, rook, files=_FILES, tasks=many, script=_SCRIPT)
        bare, slung = [], []
        for number in range(size.rounds):
            bare.append(_bare(repo, number))
            slung.append(_sling(repo, rook, number))
            _wait(repo, number + 1)  # its first turn must not slow the next sling
        for number in range(size.rounds, many):
            _sling(repo, rook, number)
        _wait(repo, many)
        left, memory = _alive(repo)
        cpu = _cpu(repo, 2.0)
    finally:
        _run(repo, [*rook, "daemon", "stop"])
        shutil.rmtree(repo, ignore_errors=True)
    baseline = statistics.median(bare)
    return Table(
        f"agents, a repository of {_FILES:,} files",
        "git worktree add",
        (
            Figure("sling, headless", statistics.median(slung), baseline, min(slung), most=baseline + _MORE),
            Figure(f"{many} waiting agents: processes", float(left), unit=""),
            Figure(f"{many} waiting agents: memory", memory, unit="MB"),
            Figure(f"{many} waiting agents: processor", cpu, unit="%"),
        ),
        ("a waiting agent has no process: mail starts one",),
    )


def make_repository(repo: str, rook: list[str], *, files: int, tasks: int, script: str) -> None:
    """A project with so many files, and tasks that are done by a script."""
    os.makedirs(repo)
    _git(repo, "init", "-q", "-b", "main")
    for number in range(files):
        folder = os.path.join(repo, f"part{number % 30}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file{number}.py"), "w") as file:
            file.write(f"VALUE = {number}\n" * 20)
    _git(repo, "add", ".")
    _git(repo, "-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "Begin")
    _run(repo, [*rook, "init", "--yes", "-q"])
    with open(os.path.join(repo, ".rookery", "config.local.yaml"), "w") as file:
        file.write("agents:\n  max_concurrent: 100\n")
    for number in range(tasks):
        _run(repo, [*rook, "task", "create", f"Task {number}", "--description", script, "-q"])


def _bare(repo: str, number: int) -> float:
    place = os.path.join(os.path.dirname(repo), f"bare{number}")
    started = time.perf_counter()
    _git(repo, "worktree", "add", "-q", "-b", f"bare{number}", place, "main")
    took = (time.perf_counter() - started) * 1000
    _git(repo, "worktree", "remove", "--force", place)
    return took


def _sling(repo: str, rook: list[str], number: int) -> float:
    db = Database.open(database_path(repo))
    task = str(db.value("SELECT id FROM tasks WHERE title = ?", (f"Task {number}",)))
    db.close()
    started = time.perf_counter()
    _run(repo, [*rook, "sling", task, "-q"])
    return (time.perf_counter() - started) * 1000


def _wait(repo: str, count: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    db = Database.open(database_path(repo))
    while db.value("SELECT count(*) FROM sessions WHERE state = 'waiting'") < count:
        if time.monotonic() > deadline:
            raise SystemExit("agents did not come to wait")
        time.sleep(0.1)
    db.close()


def _alive(repo: str) -> tuple[int, float]:
    """Processes of the project's agents and runners, and their memory."""
    pids = _pids(repo)
    kilobytes = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            kilobytes += next((int(line.split()[1]) for line in file if line.startswith("VmRSS")), 0)
    return len(pids), kilobytes / 1024


def _cpu(repo: str, seconds: float) -> float:
    """Processor time of what is alive, in percent of one."""

    def ticks() -> int:
        total = 0
        for pid in _pids(repo):
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds * 100


def _pids(repo: str) -> set[int]:
    db = Database.open(database_path(repo))
    sessions = [row[0] for row in db.all("SELECT id FROM sessions")]
    runners = {row[0] for row in db.all("SELECT runner_pid FROM sessions WHERE runner_pid IS NOT NULL")}
    db.close()
    marked = {pid for session in sessions for pid in pids_with("ROOKERY_SESSION", session)}
    return (marked | runners) & set(read_all())


def _git(repo: str, *words: str) -> None:
    _run(repo, ["git", *words])


def _run(repo: str, words: list[str]) -> None:
    subprocess.run(words, cwd=repo, check=True, capture_output=True)
