"""Sixteen processes that write durable task updates at once, beside what plain SQLite does on the same disk."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from threading import BrokenBarrierError

import apsw

from bench.in_process import AUTHOR
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.tasks import service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

    from bench.project import Size

_WRITERS = 16
_LONGEST_WAIT = 2000.0
_PATIENCE = 120.0


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
    alone: list[float] = []
    plain: list[float] = []
    together: list[float] = []
    waits: list[float] = []
    try:
        with _PlainWriter(_plain_path(root), make=True) as one:
            for _ in range(slices):
                alone.append(len(one.write(seconds)) / seconds)
                for rates in (plain, together):
                    _pass(turn, results)
                    found = [_waits(results.get(timeout=_PATIENCE)) for _ in writers]
                    rates.append(sum(map(len, found)) / seconds)
                waits += [wait for each in found for wait in each]
    finally:
        turn.abort()
        for writer in writers:
            writer.join(10)
            writer.kill()
    ratios = [ours / theirs for ours, theirs in zip(together, alone, strict=True)]
    rate = statistics.median(alone)
    return Table(
        f"{_WRITERS} writers at once",
        "one process, one row a transaction, WAL, synchronous FULL",
        (
            Figure(
                "updates, all together",
                rate * statistics.median(ratios),
                baseline=rate,
                unit="/s",
                least_ratio=0.5,
            ),
            Figure(f"{_WRITERS} plain writers at once, for comparison", statistics.median(plain), unit="/s"),
            Figure("one update", statistics.median(waits), p95=percentile(waits, 95)),
            Figure("one update, longest wait", max(waits), most=_LONGEST_WAIT),
        ),
        (
            f"{slices} slices of {seconds:g} s each by turns; the ratio is the median of theirs "
            f"({min(ratios):.2f} to {max(ratios):.2f})",
            "nobody saw a busy error",
        ),
    )


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


def _pass(turn: Barrier, results: Queue[list[float] | str]) -> None:
    try:
        turn.wait(_PATIENCE)
    except BrokenBarrierError as error:
        raise RuntimeError(f"a writer failed: {results.get(timeout=10)}") from error


def _waits(found: list[float] | str) -> list[float]:
    if isinstance(found, str):
        raise TypeError(f"a writer failed: {found}")
    return found


def _write(
    root: str, number: int, slices: int, seconds: float, turn: Barrier, results: Queue[list[float] | str]
) -> None:
    """In each slice, change plain rows, then tasks, and tell how long each took; tell an error as text."""
    try:
        db = Database.open(database_path(root))
        ids = [row[0] for row in db.all("SELECT id FROM tasks WHERE seq % ? = ? LIMIT 500", (_WRITERS, number))]
        done = 0
        for _ in range(slices):
            turn.wait(_PATIENCE)
            with _PlainWriter(_plain_path(root)) as plain:
                results.put(list(plain.write(seconds)))
            turn.wait(_PATIENCE)
            waits: list[float] = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                began = time.perf_counter()
                service.update(db, ids[done % len(ids)], AUTHOR, _change(done))
                waits.append((time.perf_counter() - began) * 1000)
                done += 1
            results.put(waits)
        db.close()
    except BrokenBarrierError:
        return  # somebody else failed, and says so
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")
        turn.abort()


def _change(done: int) -> dict[str, str | int]:
    return {"description": f"round {done}"} if done % 2 else {"priority": 1 + done // 500 % 5}
