"""How long something takes: repeated, by turns with its baseline, so that noise hits both alike."""

from __future__ import annotations

import statistics
import time

from bench.table import Figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Work = Callable[[], object]


def compare(name: str, work: Work, baseline: Work | None, repeat: int, *, most: float | None = None) -> Figure:
    """The median time of some work, in milliseconds, beside its baseline's; a first run of each does not count."""
    _milliseconds(work)
    if baseline is not None:
        _milliseconds(baseline)
    measured: list[float] = []
    bare: list[float] = []
    for _ in range(repeat):
        if baseline is not None:
            bare.append(_milliseconds(baseline))
        measured.append(_milliseconds(work))
    return Figure(
        name,
        statistics.median(measured),
        baseline=statistics.median(bare) if bare else None,
        best=min(measured),
        p95=percentile(measured, 95),
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
