"""Commands in a project with a million events and 100,000 tasks: when the first line is there, and when the last."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from bench.cold import program_words
from bench.large_project import FULL, QUICK, agent_name, make
from bench.project import Size
from bench.table import Figure, Table
from rookery.config.project import database_path
from rookery.db.database import Database

_FIRST, _LAST = 300, 1000
_STREAMS = ("--all", "--limit 0")
_REPEAT = 3


def measure(root: str, size: Size) -> Table:
    """Each command as a process, through the daemon, beside a bare interpreter."""
    past = FULL if size.rounds > 2 else QUICK
    place = make(os.path.dirname(os.path.dirname(root)), size, past)
    program = program_words()
    commands = _commands(place)
    try:
        _call([*program, "status"], place)  # starts the daemon
        bare = statistics.median(_call([sys.executable, "-I", "-c", "pass"], place)[1] for _ in range(10))
        figures = [figure for words in commands for figure in _figures(program, words, place, bare)]
    finally:
        subprocess.run([*program, "daemon", "stop"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    return Table(
        f"{size.tasks:,} tasks, {past.events:,} events, as many tool calls",
        "`python -I -c pass` in the same run",
        tuple(figures),
    )


def _commands(root: str) -> list[str]:
    db = Database.open(database_path(root))
    task = str(db.value("SELECT task_id FROM sessions ORDER BY seq DESC LIMIT 1"))
    db.close()
    agent = agent_name(3)
    return [
        *("status", "status --all", f"inspect {agent}", f"trace {agent}", f"trace {task}", "errors"),
        *(f"errors --agent {agent}", "events", "events --errors", "logs", f"logs {agent}", "replay"),
        *("task tree", "task progress", "task list", "task list --ready", "task search common", "task next-ready"),
        *("mail list", "costs", "costs --by task", "metrics", "run list", "merge list --all", "radar"),
        *("task tree --all", f"trace {agent} --limit 0", "errors --limit 0"),
    ]


def _figures(program: list[str], words: str, root: str, bare: float) -> list[Figure]:
    """Its first output and, unless it shows everything that there is, its end."""
    times = [_call([*program, *words.split()], root) for _ in range(_REPEAT)]
    first, last = (statistics.median(column) for column in zip(*times, strict=True))
    best_first, best_last = (min(column) for column in zip(*times, strict=True))
    shown = f"{words}: first line"
    if words.endswith(_STREAMS):
        return [Figure(shown, first, bare, best_first, most=_FIRST), Figure("… all of it", last, bare, best_last)]
    if last - first < _FIRST / 10:
        return [Figure(words, last, bare, best_last, most=_FIRST)]
    return [Figure(shown, first, bare, best_first, most=_FIRST), Figure("… all", last, bare, best_last, most=_LAST)]


def _call(argv: list[str], root: str) -> tuple[float, float]:
    """Milliseconds until the first output of a command, and until its end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOKERY_")}
    started = time.perf_counter()
    first = None
    with subprocess.Popen(argv, cwd=root, env=kept, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        while os.read(child.stdout.fileno(), 1 << 20):
            first = first or time.perf_counter()
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(argv)} ended with status {child.returncode}")
    last = time.perf_counter()
    return ((first or last) - started) * 1000, (last - started) * 1000
