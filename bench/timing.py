"""How long something takes: repeated, by turns with its baseline, so that noise hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.table import Figure

Work = Callable[[], object]


def compare(name: str, work: Work, baseline: Work | None, repeat: int, *, most: float | None = None) -> Figure:
    """The median time of some work, in milliseconds, beside its baseline's; a first run of each does not count."""
    _milliseconds(work)
    if baseline is not None:
        _milliseconds(baseline)
    measured: list[float] = []
    bare: list[float] = []
    processor: list[float] = []
    for _ in range(repeat):
        if baseline is not None:
            bare.append(_milliseconds(baseline))
        busy = time.process_time()
        measured.append(_milliseconds(work))
        processor.append((time.process_time() - busy) * 1000)
    return Figure(
        name,
        statistics.median(measured),
        baseline=statistics.median(bare) if bare else None,
        best=min(measured),
        p95=percentile(measured, 95),
        cpu=statistics.median(processor),
        most=most,
    )


def percentile(values: list[float], percent: int) -> float:
    """The value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _milliseconds(work: Work) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
