"""Whether a merged file still has what both sides did: no added line missing, no deleted line back.

Counts lines and knows nothing of the rules, so it holds for every tier: a line that only moved is not lost, one that
both sides added may stand there once. What a rule left out knowingly it names, and that alone is forgiven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.resolve import text
from rookery.merge.resolve.model import ADDED_MISSING, BOTH, DELETED_BACK, KEPT_MISSING, OURS, THEIRS, Cover, Sides


@dataclass(frozen=True, slots=True)
class Loss(Record):
    """A line that one side has put in or taken out, which the result does not show."""

    side: str
    kind: str
    line: str
    count: int


def check(sides: Sides, result: bytes, covered: Iterable[Cover] = ()) -> list[Loss]:
    """What got lost; empty if nothing. An absent side counts as an empty file, and so does one that is not text."""
    forgiven: Counter[tuple[str, str, str]] = Counter()
    for cover in covered:
        forgiven[cover.side, cover.kind, cover.line] += cover.count
    found = losses(_lines(sides.base), _lines(sides.ours), _lines(sides.theirs), _lines(result))
    left = ((loss, loss.count - forgiven[loss.side, loss.kind, loss.line]) for loss in found)
    return [loss.replace(count=count) for loss, count in left if count > 0]


def losses(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], result: Sequence[str]) -> Iterator[Loss]:
    """The same for lines, with nothing forgiven. Blank lines do not count."""
    before, left, right, after = Counter(base), Counter(ours), Counter(theirs), Counter(result)
    for line in dict.fromkeys((*base, *ours, *theirs)):
        if not line.strip():
            continue
        was, now = before[line], after[line]
        by_ours, by_theirs = left[line] - was, right[line] - was
        taken = min(by_ours, 0) + min(by_theirs, 0)
        # Two sides that add the same line may mean the same one, and two that delete it too.
        least = was + max(by_ours, by_theirs, 0) + taken
        most = was + max(by_ours, 0) + max(by_theirs, 0) + min(by_ours, by_theirs, 0)
        if now < least:
            yield _missing(line, by_ours, by_theirs, least - now)
        elif now > most and taken < 0:
            side = _whose(-by_ours, -by_theirs)
            yield Loss(side, DELETED_BACK, line, now - most)


def _missing(line: str, by_ours: int, by_theirs: int, count: int) -> Loss:
    if by_ours <= 0 and by_theirs <= 0:
        return Loss(BOTH, KEPT_MISSING, line, count)
    return Loss(_whose(by_ours, by_theirs), ADDED_MISSING, line, count)


def _whose(by_ours: int, by_theirs: int) -> str:
    return OURS if by_ours >= by_theirs else THEIRS


def _lines(content: bytes | None) -> tuple[str, ...]:
    found = None if content is None else text.read(content)
    return () if found is None else found.lines
