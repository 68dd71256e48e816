"""Landing: gate runs and time beside one-by-one landing, and each step beside the bare git that it stands on."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import rookery
from bench.project import Size
from bench.table import Figure, Table
from rookery.config.environ import read_environ
from rookery.config.layout import FOLDER
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.daemon.start import start_daemon
from rookery.db.database import Database
from rookery.merge import predict, queue, service
from rookery.merge.merger import Merger
from rookery.merge.radar import service as radar
from rookery.ops.context import Context
from rookery.sessions.credentials import CLIENT

_FILES = 3000
_BRANCHES = 50
_IN_A_ROW = 3
_BAD, _CLASHING, _GOOD = (4, 11), 3, 15
_GATE = "sleep 0.3; ! grep -lq broken *.txt"
_MOST_RUNS = 0.65
_MOST_RADAR = 500.0
_MOST_LANDING = 2.5
_COUNTING = """
import sys
import apsw
statements = []
apsw.connection_hooks.append(lambda each: each.set_exec_trace(lambda cursor, sql, values: not statements.append(sql)))
from rookery.cli.main import main
status = main(["merge", "--branch", "counted"])
modules = [name for name in sys.modules if name.partition(".")[0] == "rookery"]
print(len(statements), statements.count("BEGIN IMMEDIATE"), len(modules), file=sys.stderr)
sys.exit(status)
"""


def measure(root: str, size: Size) -> Table:
    """On repositories of its own: twenty small branches to land, and fifty in 3,000 files to compare."""
    place = os.path.join(os.path.dirname(root), "landing")
    try:
        serial = _land_queue(os.path.join(place, "serial"), batch=1)
        batched = _land_queue(os.path.join(place, "batched"), batch=8)
        large = os.path.join(place, "large")
        _make_large(large, _BRANCHES if size.rounds > 2 else 10)
        figures = (*_steps(large, size.rounds), *_radar(large, size.rounds))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Table(
        f"landing, {_GOOD + len(_BAD) + _CLASHING} branches, and a repository of {_FILES:,} files",
        "one by one; bare git",
        (
            Figure("20 branches: gate runs", float(batched[0]), float(serial[0]), unit="", most_ratio=_MOST_RUNS),
            Figure("20 branches: time", batched[1], serial[1]),
            *figures,
        ),
        (f"of the 20, {len(_BAD)} break the tests and {_CLASHING} conflict; both ways land the same {_GOOD}",),
    )


def _land_queue(folder: str, *, batch: int) -> tuple[int, float]:
    """Gate runs and milliseconds to land the queue."""
    begin(folder, {"shared.txt": "1\n2\n3\n"})
    names = []
    for number in range(_GOOD + len(_BAD)):
        name = f"{'bad' if number in _BAD else 'good'}{number:02}"
        files = {f"{name}.txt": "broken\n" if number in _BAD else f"{name}\n"}
        _branch(folder, name, files | ({"shared.txt": "1\nx\n3\n"} if number == 0 else {}))
        names.append(name)
    for number in range(_CLASHING):
        _branch(folder, f"clash{number}", {"shared.txt": f"1\ny{number}\n3\n"})
        names.append(f"clash{number}")
    merger = open_merger(
        folder, f"gates:\n  - {{name: tests, run: '{_GATE}'}}\nmerge:\n  tiers: []\n  batch: {batch}\n"
    )
    service.enqueue(merger, names, "main")
    started = time.perf_counter()
    report = queue.work(merger, "main")
    took = (time.perf_counter() - started) * 1000
    landed = sum(1 for entry in report.entries if entry.state == "landed")
    if landed != _GOOD:
        raise RuntimeError(f"{landed} landed, not {_GOOD}")
    merger.ctx.db.close()
    return report.gate_runs, took


def _steps(folder: str, rounds: int) -> Iterator[Figure]:
    """A prediction beside `git merge-tree`, and a landing without gates beside `git merge`."""
    merger = open_merger(folder, "merge:\n  tiers: []\n")
    names = list(merger.vcs.branches("b"))[:rounds]
    bare, ours = [], []
    for name in names:
        bare.append(timed(lambda name=name: git(folder, "merge-tree", "--write-tree", "main", name, check=False)))
        entry = service.draft(merger, name, "main")
        ours.append(timed(lambda entry=entry: predict.predict_all(merger, [entry])))
    yield Figure("prediction", statistics.median(ours), statistics.median(bare), min(ours))
    merger.ctx.db.close()
    yield from _clean_landings(folder, rounds)


def _clean_landings(folder: str, rounds: int) -> Iterator[Figure]:
    """A landing without gates where the base is checked out, beside `git merge`: in process, and by a client's call."""
    merger = open_merger(folder, "merge:\n  tiers: []\n")
    start_daemon(folder)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ROOKERY_PYTHON": sys.executable}
    env["ROOKERY_DAEMON"] = "on"
    client = [os.path.join(CLIENT, "rook")]
    work: dict[str, Callable[[str], object]] = {
        "bare": lambda name: git(folder, "merge", "-q", "--no-ff", "--no-edit", name),
        "ours": lambda name: queue.land_branch(merger, name, "main"),
        "call": lambda name: _run([*client, "merge", "--branch", name], folder, env),
    }
    times: dict[str, list[float]] = {kind: [] for kind in work}
    worktree = f"{folder}-worktree"
    git(folder, "worktree", "add", "-q", "--detach", worktree)
    try:
        for number in range(rounds):
            for kind, land in work.items():
                names = [f"{kind}{number}-{index}" for index in range(_IN_A_ROW)]
                for name in names:  # as agents do, in a worktree
                    _branch(worktree, name, {f"{name}.txt": kind}, back="--detach")
                times[kind] += [timed(lambda land=land, name=name: land(name)) for name in names]
    finally:
        merger.ctx.db.close()
        _run([*client, "daemon", "stop"], folder, env)
        git(folder, "worktree", "remove", "--force", worktree)
    bare = statistics.median(times["bare"])
    for kind, name in (("ours", "clean landing, in process"), ("call", "clean landing, a client's call of the daemon")):
        yield Figure(name, statistics.median(times[kind]), bare, min(times[kind]), most_ratio=_MOST_LANDING)
    yield from _usage(folder)


def _usage(folder: str) -> Iterator[Figure]:
    """What the whole command of a clean landing uses, counted in a process of its own."""
    _branch(folder, "counted", {"counted.txt": "counted"})
    with tempfile.TemporaryDirectory(prefix="rook-traces-") as traces:
        source = os.path.dirname(os.path.dirname(rookery.__file__))
        env = os.environ | {"PYTHONPATH": source, "ROOKERY_DAEMON": "off", "GIT_TRACE2_EVENT": traces}
        words = [sys.executable, "-c", _COUNTING]
        done = subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, text=True)
        gits = len(os.listdir(traces))
    statements, writes, modules = (int(word) for word in done.stderr.split())
    yield Figure("clean landing: git processes", gits, unit="", most=8)
    yield Figure("clean landing: write transactions", writes, unit="", most=4)
    yield Figure("clean landing: SQL statements", statements, unit="")
    yield Figure("clean landing: modules of ours loaded", modules, unit="")


def _radar(folder: str, rounds: int) -> Iterator[Figure]:
    """All branches against each other, and then one that has changed."""
    merger = open_merger(folder, "")
    names = list(merger.vcs.branches("b"))
    service.enqueue(merger, names, "main")
    first = timed(lambda: radar.scan(merger, "main"))
    overlaps = len(radar.scan(merger, "main").overlaps)
    yield Figure(f"radar: {len(names)} branches, {overlaps} overlap, first look", first)
    again = []
    for number in range(rounds):
        _branch(folder, names[0], {"part0/file0.py": f"again {number}\n"}, new=False)
        again.append(timed(lambda: radar.scan(merger, "main")))
    yield Figure(f"radar: one of {len(names)} has changed", statistics.median(again), best=min(again), most=_MOST_RADAR)
    merger.ctx.db.close()


def _make_large(folder: str, branches: int) -> None:
    begin(folder, {f"part{n % 30}/file{n}.py": f"VALUE = {n}\n" * 20 for n in range(_FILES)})
    for number in range(branches):
        touched = {number * 7 % 90, number * 11 % 90, 100 + number}
        files = {f"part{n % 30}/file{n}.py": f"VALUE = {n}\n" * 19 + f"by {number}\n" for n in touched}
        _branch(folder, f"b{number:02}", files)


def begin(folder: str, files: dict[str, str]) -> None:
    """A repository with a project and a first commit."""
    os.makedirs(folder)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "b")
    git(folder, "config", "user.email", "b@example.org")
    _commit(folder, files)
    os.makedirs(os.path.join(folder, FOLDER))
    with open(os.path.join(folder, FOLDER, ".gitignore"), "w") as file:
        file.write("*\n")
    Database.create(database_path(folder)).close()


def _branch(folder: str, name: str, files: dict[str, str], *, new: bool = True, back: str = "main") -> None:
    git(folder, "switch", "-q", *(("-c", name, "main") if new else (name,)))
    _commit(folder, files)
    git(folder, "switch", "-q", back)


def _commit(folder: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Work")


def open_merger(folder: str, settings: str) -> Merger:
    """The project with these settings; the database is the caller's to close."""
    with open(os.path.join(folder, FOLDER, "config.yaml"), "w") as file:
        file.write("provision:\n  ports: 0\n" + settings)
    config = load_config(folder, read_environ({"HOME": "/nowhere"}), {}).config
    return Merger(Context.at(folder, Database.open(database_path(folder)), config), "human")


def timed(work: object) -> float:
    """The milliseconds that something takes."""
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return (time.perf_counter() - started) * 1000


def git(folder: str, *args: str, check: bool = True) -> None:
    """Run git."""
    subprocess.run(["git", *args], cwd=folder, check=check, capture_output=True)


def _run(words: list[str], folder: str, env: dict[str, str]) -> None:
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)
