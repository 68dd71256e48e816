"""Commands without a daemon: a process each, beside the same interpreter that does nothing.

Calls of agents go through the daemon, and its topic has the aims for them.
"""

from __future__ import annotations

import compileall
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import rookery
from bench.project import Size
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.config.project import database_path
from rookery.db.database import Database


def measure(root: str, size: Size) -> Table:
    """Every command and the bare interpreter by turns."""
    notes = [_compile()]
    program, note = find_program()
    notes.append(note)
    db = Database.open(database_path(root))
    task = str(db.value("SELECT id FROM tasks WHERE parent_id IS NOT NULL ORDER BY seq DESC LIMIT 1"))
    epic = str(db.value("SELECT id FROM tasks WHERE parent_id IS NULL LIMIT 1"))
    title = str(db.value("SELECT title FROM tasks WHERE id = ?", (task,)))
    db.close()
    commands = {
        "task get --json": ["task", "get", task, "--json"],
        "task next-ready --json": ["task", "next-ready", "--json"],
        "task claim --json": ["task", "claim", "--json", "--lease", "1h"],
        "task list --json": ["task", "list", "--json"],
        "task search": ["task", "search", title.split()[0]],
        "task tree EPIC": ["task", "tree", epic],
        "task create --json": ["task", "create", "another", "--json"],
        "events --json": ["events", "--json"],
    }
    bare: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(size.starts):
        for name, words in commands.items():
            bare.append(milliseconds([sys.executable, "-I", "-c", "pass"], root))
            times[name].append(milliseconds([*program, *words], root))
    baseline = statistics.median(bare)
    figures = [
        Figure(
            name,
            statistics.median(took),
            baseline=baseline,
            best=min(took),
            p95=percentile(took, 95),
        )
        for name, took in times.items()
    ]
    return Table(
        "Commands without a daemon", "`python -I -c pass` of the same interpreter", tuple(figures), tuple(notes)
    )


def milliseconds(argv: list[str], root: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        argv, cwd=root, env=_environment(), stdout=subprocess.DEVNULL, check=True
    )  # with a timeout it would poll
    return (time.perf_counter() - started) * 1000


def _environment() -> dict[str, str]:
    """The caller's, without a daemon, with this Rookery found first, and no other project or agent named."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOKERY_")}
    return {**kept, "ROOKERY_DAEMON": "off", "PYTHONPATH": os.path.dirname(os.path.dirname(rookery.__file__))}


def find_program() -> tuple[list[str], str]:
    """The console script of this interpreter, if there is one; else the module."""
    script = os.path.join(os.path.dirname(sys.executable), "rook")
    if os.path.exists(script):
        return [script], f"run by {script}"
    return [sys.executable, "-m", "rookery"], "run by `python -m rookery`: there is no console script"


def _compile() -> str:
    """Compile Rookery, whatever PYTHONDONTWRITEBYTECODE says; the note says if that cannot be."""
    folder = os.path.dirname(rookery.__file__)
    compileall.compile_dir(folder, quiet=1)
    missing = [
        name
        for path, _, names in os.walk(folder)
        for name in names
        if name.endswith(".py") and not os.path.exists(importlib.util.cache_from_source(os.path.join(path, name)))
    ]
    return f"BYTECODE IS MISSING for {len(missing)} modules" if missing else "bytecode is compiled"


def program_words() -> list[str]:
    """The words that start `rook`, with its bytecode compiled."""
    _compile()
    return find_program()[0]
