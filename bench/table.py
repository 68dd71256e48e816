"""A topic's figures: baseline, measured, ratio, aim, and whether it is met."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record

_FAR = 1.5
_HEADINGS = ("", "baseline", "measured", "best", "p95", "cpu", "ratio", "aim", "met")


@dataclass(frozen=True, slots=True)
class Figure(Record):
    """One thing that was measured, beside its baseline."""

    name: str
    measured: float
    baseline: float | None = None
    best: float | None = None
    """The quickest run: what is left when nothing else disturbs the machine."""
    p95: float | None = None
    cpu: float | None = None
    """Processor time of the same runs: on a machine that is busy with other things, the figure to look at."""
    unit: str = "ms"
    most: float | None = None
    """The aim: at most so much, in the unit."""
    most_ratio: float | None = None
    """The aim: at most so many times the baseline."""
    least_ratio: float | None = None
    """The aim: at least this share of the baseline."""

    @property
    def ratio(self) -> float | None:
        """Measured by baseline."""
        return None if not self.baseline else self.measured / self.baseline

    @property
    def aim(self) -> str:
        """The aim in words; empty without one."""
        if self.most is not None:
            return f"≤ {self.most:g} {self.unit}"
        if self.most_ratio is not None:
            return f"≤ {self.most_ratio:g}x"
        return "" if self.least_ratio is None else f"≥ {self.least_ratio:g}x"

    @property
    def is_met(self) -> bool | None:
        """None without an aim."""
        if self.most is not None:
            return self.measured <= self.most
        if self.ratio is None:
            return None
        if self.most_ratio is not None:
            return self.ratio <= self.most_ratio
        return None if self.least_ratio is None else self.ratio >= self.least_ratio

    @property
    def is_far_off(self) -> bool:
        """True if the aim is missed by more than half: what noise alone does not do."""
        if self.most is not None:
            return self.measured > self.most * _FAR
        if self.ratio is None:
            return False
        if self.most_ratio is not None:
            return self.ratio > self.most_ratio * _FAR
        return self.least_ratio is not None and self.ratio * _FAR < self.least_ratio


@dataclass(frozen=True, slots=True)
class Table(Record):
    """A topic: what the baseline is, the figures, and notes."""

    title: str
    baseline: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_far_off(self) -> bool:
        """True if an aim is missed by more than half."""
        return any(figure.is_far_off for figure in self.figures)


def render(table: Table) -> str:
    """The table as text."""
    rows = [_HEADINGS, *(_row(figure) for figure in table.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = [f"{table.title} (baseline: {table.baseline})"]
    for row in rows:
        first, *rest = (
            f"{cell:<{width}}" if n == 0 else f"{cell:>{width}}" for n, (cell, width) in _sized(row, widths)
        )
        lines.append("  ".join(("  " + first, *rest)).rstrip())
    lines += [f"  {note}" for note in table.notes]
    return "\n".join(lines) + "\n"


def _sized(row: tuple[str, ...], widths: list[int]) -> list[tuple[int, tuple[str, int]]]:
    return list(enumerate(zip(row, widths, strict=True)))


def _row(figure: Figure) -> tuple[str, ...]:
    met = {True: "yes", False: "NO", None: ""}[figure.is_met]
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}x"
    amounts = (
        _amount(value, figure.unit) for value in (figure.baseline, figure.measured, figure.best, figure.p95, figure.cpu)
    )
    return (figure.name, *amounts, ratio, figure.aim, met)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"
