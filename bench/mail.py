"""Mail: cold commands beside a bare interpreter, and eight processes that send at once."""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time

from bench.cold import milliseconds, program_words
from bench.project import Size
from bench.table import Figure, Table
from bench.timing import percentile
from rookery.base.clock import stamp
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.mail import service
from rookery.mail.model import Draft
from rookery.ops.model import PERSON

_SENDERS = 8
_EACH = 50
_AIM_RATE = 200.0


def measure(root: str, size: Size) -> Table:
    """Every command and the bare interpreter by turns, then the senders."""
    program = program_words()
    commands = {
        "mail check": ["mail", "check"],
        "mail send": ["mail", "send", "human", "--subject", "Hello", "--body", "How are you?"],
    }
    bare: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(size.starts):
        for name, words in commands.items():
            bare.append(milliseconds([sys.executable, "-I", "-S", "-c", "pass"], root))
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
    rate, stored = _send_together(root)
    name = f"{_SENDERS} processes, {_EACH} messages each"
    figures.append(Figure(name, rate, baseline=_AIM_RATE, unit="/s", least_ratio=1))
    lost = _SENDERS * _EACH - stored
    return Table(
        "mail, without a daemon",
        "python -I -S -c pass; for the senders, the aim of 200 a second",
        tuple(figures),
        (f"{stored} of {_SENDERS * _EACH} messages were stored, {lost} lost; a refused one ends the benchmark",),
    )


def _send_together(root: str) -> tuple[float, int]:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(_SENDERS + 1)
    senders = [spawn.Process(target=_send, args=(root, number, ready)) for number in range(_SENDERS)]
    before = _count(root)
    for sender in senders:
        sender.start()
    ready.wait(60)
    started = time.perf_counter()
    for sender in senders:
        sender.join(60)
        if sender.exitcode != 0:
            raise SystemExit(f"a sender ended with {sender.exitcode}")
    return _SENDERS * _EACH / (time.perf_counter() - started), _count(root) - before


def _send(root: str, number: int, ready: multiprocessing.synchronize.Barrier) -> None:
    db = Database.open(database_path(root))
    ready.wait(60)
    for message in range(_EACH):
        service.send(db, PERSON, Draft(("human",), f"{number}: {message}", "Hello"), stamp(time.time()))
    db.close()


def _count(root: str) -> int:
    db = Database.open(database_path(root))
    try:
        return int(db.value("SELECT count(*) FROM messages"))
    finally:
        db.close()
