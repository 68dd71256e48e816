"""Whether a merged file still has what both sides did: no added line missing, no deleted line back.

It counts lines and knows nothing of the rules, so it holds for every tier: a line that only moved is not lost, one
that both sides added may stand there once. A rule names what it knowingly left out, and only that is forgiven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rookery.merge.resolve import text
from rookery.merge.resolve.model import ADDED_MISSING, BOTH, DELETED_BACK, KEPT_MISSING, OURS, THEIRS, Loss, Sides


def check(sides: Sides, result: bytes, covered: Iterable[Loss] = ()) -> list[Loss]:
    """The lost lines. An absent side counts as an empty file, and so does one that is not text."""
    forgiven: Counter[tuple[str, str, str]] = Counter()
    for cover in covered:
        forgiven[cover.side, cover.kind, cover.line] += cover.count
    lost = losses(_lines(sides.base), _lines(sides.ours), _lines(sides.theirs), _lines(result))
    left = ((loss, loss.count - forgiven[loss.side, loss.kind, loss.line]) for loss in lost)
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
            is_added = max(by_ours, by_theirs) > 0
            side = (OURS if by_ours >= by_theirs else THEIRS) if is_added else BOTH
            yield Loss(side, ADDED_MISSING if is_added else KEPT_MISSING, line, least - now)
        elif now > most and taken < 0:
            yield Loss(OURS if by_ours <= by_theirs else THEIRS, DELETED_BACK, line, now - most)


def _lines(content: bytes | None) -> tuple[str, ...]:
    read = text.read(content or b"")
    return () if read is None else read.lines
