"""Sixteen who write durable task updates at once, beside what plain SQLite does on the same disk.

Threads of one process share their commits, as the calls of a daemon do; processes write each for themselves.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import statistics
import sys
import threading
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError

import apsw

from bench.in_process import AUTHOR
from bench.project import Size
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.base.call import Call, serving
from rookery.base.ids import EVENT, new_id
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.db.pool import Pool
from rookery.tasks import service

_WRITERS = 16
_LONGEST_WAIT = 2000.0
_PATIENCE = 120.0
_SWITCH_SECONDS = 0.0005
"""How soon a thread lets another one compute: as in a daemon."""


def measure(root: str, size: Size) -> Table:
    """Rates by turns in short slices, because a disk has moods; any error of a writer ends the benchmark."""
    # Spawned, never forked: an open SQLite connection must not be carried over a fork.
    spawn = multiprocessing.get_context("spawn")
    turn = spawn.Barrier(_WRITERS + 1)
    results: Queue[list[float] | str] = spawn.Queue()
    slices, seconds = size.rounds, size.seconds
    writers = [
        spawn.Process(target=_write, args=(root, number, slices, seconds, turn, results)) for number in range(_WRITERS)
    ]
    for writer in writers:
        writer.start()
    rates: dict[str, list[float]] = {name: [] for name in ("row", "plain", "update", "processes", "threads")}
    waits: dict[str, list[float]] = {"processes": [], "threads": []}
    syncs: list[float] = []
    path = database_path(root)

    def note(name: str, durations: list[float]) -> None:
        rates[name].append(len(durations) / seconds)
        if name in waits:
            waits[name] += durations

    try:
        with _PlainWriter(_plain_path(root), make=True) as row, _PlainUpdater(path) as updater, _Threads(path) as crowd:
            for _ in range(slices):
                syncs += _time_syncs(root)
                note("row", row.write(seconds))
                for name in ("plain", "processes"):
                    _pass(turn, results)
                    note(name, [wait for _ in writers for wait in _waits(results.get(timeout=_PATIENCE))])
                note("update", updater.write(seconds))
                note("threads", crowd.write(seconds))
    finally:
        turn.abort()
        for writer in writers:
            writer.join(10)
            writer.kill()
    return Table(
        f"{_WRITERS} writers at once",
        "one process, WAL, synchronous FULL, a transaction each: for threads the same updates, else one row",
        (
            _compare("updates, 16 threads of a daemon", rates["threads"], rates["update"], 0.8),
            Figure("one update", statistics.median(waits["threads"]), p95=percentile(waits["threads"], 95)),
            Figure("one update, longest wait", max(waits["threads"]), most=_LONGEST_WAIT),
            _compare("the same, beside one row a transaction", rates["threads"], rates["row"]),
            _compare("updates, 16 processes", rates["processes"], rates["row"], 0.5),
            Figure("one update", statistics.median(waits["processes"]), p95=percentile(waits["processes"], 95)),
            Figure("one update, longest wait", max(waits["processes"]), most=_LONGEST_WAIT),
            Figure(f"{_WRITERS} plain processes, one row a transaction", statistics.median(rates["plain"]), unit="/s"),
            Figure("one fdatasync", statistics.median(syncs), p95=percentile(syncs, 95)),
        ),
        (
            f"{slices} slices of {seconds:g} s each by turns; each ratio is the median of theirs, for threads "
            f"{_span(rates['threads'], rates['update'])}",
            "no writer saw a busy error",
        ),
    )


def _compare(name: str, ours: list[float], theirs: list[float], aim: float | None = None) -> Figure:
    rate = statistics.median(theirs)
    return Figure(name, rate * statistics.median(_ratios(ours, theirs)), baseline=rate, unit="/s", least_ratio=aim)


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def _span(ours: list[float], theirs: list[float]) -> str:
    ratios = _ratios(ours, theirs)
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _time_syncs(root: str) -> list[float]:
    """How long the disk takes for what a commit waits for, some times, in milliseconds."""
    durations = []
    with open(os.path.join(os.path.dirname(root), "sync"), "ab") as file:
        for _ in range(20):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            durations.append((time.perf_counter() - began) * 1000)
    return durations


def _plain_path(root: str) -> str:
    return os.path.join(os.path.dirname(root), "plain.db")


class _PlainWriter:
    """What SQLite does by itself."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(int(_PATIENCE * 1000))
        if make:
            self._connection.pragma("journal_mode", "wal")
            self._connection.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, words TEXT)")
            rows = [(number,) for number in range(1000)]
            with self._connection:
                self._connection.executemany("INSERT INTO plain VALUES (?, 'some words')", rows)
        self._connection.pragma("synchronous", "full")

    def __enter__(self) -> _PlainWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def write(self, seconds: float) -> list[float]:
        """Change rows, each in a transaction of its own, and tell how long each took, in milliseconds."""
        waits: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            done = len(waits)
            self._connection.execute("UPDATE plain SET words = ? WHERE id = ?", (f"other words {done}", done % 1000))
            waits.append((time.perf_counter() - began) * 1000)
        return waits


class _PlainUpdater:
    """The statements of a task's update by themselves, one transaction after the other."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(int(_PATIENCE * 1000))
        self._connection.pragma("synchronous", "full")
        self._ids = [row[0] for row in self._connection.execute("SELECT id FROM tasks LIMIT 500")]

    def __enter__(self) -> _PlainUpdater:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def write(self, seconds: float) -> list[float]:
        """Change tasks, and tell how long each took, in milliseconds."""
        run = self._connection.execute
        waits: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            done = len(waits)
            task = self._ids[done % len(self._ids)]
            [(column, value)] = _change(done).items()
            run("BEGIN IMMEDIATE")
            run(f"UPDATE tasks SET {column} = ?, updated_at = ? WHERE id = ?", (value, AUTHOR.now, task))
            run(
                "INSERT INTO events (id, at, type, actor, subject, data) VALUES (?, ?, ?, ?, ?, ?)",
                (new_id(EVENT), AUTHOR.now, "task.updated", AUTHOR.name, task, f'{{"set": {{"{column}": "{value}"}}}}'),
            )
            run("COMMIT")
            waits.append((time.perf_counter() - began) * 1000)
        return waits


class _Threads:
    """Calls in threads, each with an open connection, as in a daemon."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pool = Pool()
        self._errors: list[BaseException] = []

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_error: object) -> None:
        self._pool.close()

    def write(self, seconds: float) -> list[float]:
        """Let all of them change tasks, and tell how long each update took, in milliseconds."""
        waits: list[float] = []
        begin = threading.Barrier(_WRITERS)
        threads = [
            threading.Thread(target=self._serve, args=(number, seconds, begin, waits)) for number in range(_WRITERS)
        ]
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
        for error in self._errors:
            raise error
        return waits

    def _serve(self, number: int, seconds: float, begin: threading.Barrier, waits: list[float]) -> None:
        streams = (io.StringIO(), io.StringIO(), io.StringIO())
        call = Call(environ={}, cwd="/", umask=0o022, pid=os.getpid(), streams=streams)
        call.connections = self._pool
        try:
            with serving(call):
                db = Database.open(self._path)
                ids = _own_ids(db, number)
                begin.wait(_PATIENCE)
                waits += _update(db, ids, seconds, 0)
                db.close()
        except BaseException as error:
            self._errors.append(error)
            begin.abort()


def _own_ids(db: Database, number: int) -> list[str]:
    return [row[0] for row in db.all("SELECT id FROM tasks WHERE seq % ? = ? LIMIT 500", (_WRITERS, number))]


def _update(db: Database, ids: list[str], seconds: float, done: int) -> list[float]:
    waits: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        service.update(db, ids[done % len(ids)], AUTHOR, _change(done))
        waits.append((time.perf_counter() - began) * 1000)
        done += 1
    return waits


def _pass(turn: Barrier, results: Queue[list[float] | str]) -> None:
    try:
        turn.wait(_PATIENCE)
    except BrokenBarrierError as error:
        raise RuntimeError(f"a writer failed: {results.get(timeout=10)}") from error


def _waits(durations: list[float] | str) -> list[float]:
    if isinstance(durations, str):
        raise TypeError(f"a writer failed: {durations}")
    return durations


def _write(
    root: str, number: int, slices: int, seconds: float, turn: Barrier, results: Queue[list[float] | str]
) -> None:
    """In each slice, change plain rows, then tasks, and tell how long each took; tell an error as text."""
    try:
        db = Database.open(database_path(root))
        ids = _own_ids(db, number)
        done = 0
        for _ in range(slices):
            turn.wait(_PATIENCE)
            with _PlainWriter(_plain_path(root)) as plain:
                results.put(list(plain.write(seconds)))
            turn.wait(_PATIENCE)
            waits = _update(db, ids, seconds, done)
            done += len(waits)
            results.put(waits)
        db.close()
    except BrokenBarrierError:
        return  # another writer failed, and reports it
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")
        turn.abort()


def _change(done: int) -> dict[str, str | int]:
    return {"description": f"round {done}"} if done % 2 else {"priority": 1 + done // 500 % 5}
