"""Which lines two versions have in common: histogram diff.

It anchors on the rarest common lines, as git's merge does, so that functions match functions and not each other's
braces. `difflib` anchors on the longest run, gives other results than git, and takes twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence

Block = tuple[int, int, int]
"""Where a run of common lines begins in the one and in the other, and how long it is."""

_FREQUENT = 512
"""A line that a stretch has more often anchors nothing: a long file of few different lines would take minutes."""


def matching(left: Sequence[str], right: Sequence[str]) -> list[Block]:
    """The runs of lines that both have, in order, none overlapping, none touching another in both."""
    blocks: list[Block] = []
    spans = [(0, len(left), 0, len(right))]
    while spans:
        a_from, a_to, b_from, b_to = spans.pop()
        size = _run_after(left, right, a_from, a_to, b_from, b_to)
        blocks.append((a_from, b_from, size))
        a_from, b_from = a_from + size, b_from + size
        size = _run_before(left, right, a_from, a_to, b_from, b_to)
        a_to, b_to = a_to - size, b_to - size
        blocks.append((a_to, b_to, size))
        anchor = _anchor(left, right, a_from, a_to, b_from, b_to)
        if anchor is not None:
            i, j, size = anchor
            blocks.append(anchor)
            spans += [(a_from, i, b_from, j), (i + size, a_to, j + size, b_to)]
    return _slide_down(left, right, sorted(block for block in blocks if block[2]))


def _run_after(a: Sequence[str], b: Sequence[str], a_from: int, a_to: int, b_from: int, b_to: int) -> int:
    """How many lines are the same from the beginning of a stretch on."""
    size, most = 0, min(a_to - a_from, b_to - b_from)
    while size < most and a[a_from + size] == b[b_from + size]:
        size += 1
    return size


def _run_before(a: Sequence[str], b: Sequence[str], a_from: int, a_to: int, b_from: int, b_to: int) -> int:
    """How many lines are the same at the end of a stretch."""
    size, most = 0, min(a_to - a_from, b_to - b_from)
    while size < most and a[a_to - size - 1] == b[b_to - size - 1]:
        size += 1
    return size


def _anchor(a: Sequence[str], b: Sequence[str], a_from: int, a_to: int, b_from: int, b_to: int) -> Block | None:
    """The longest run around the rarest common line of a stretch."""
    places: dict[str, list[int]] = {}
    for i in range(a_from, a_to):
        places.setdefault(a[i], []).append(i)
    best: Block | None = None
    rarest, longest = _FREQUENT, 0
    j = b_from
    while j < b_to:
        beyond = j + 1
        here = places.get(b[j], ())
        passed = -1
        for i in here if len(here) <= rarest else ():
            if i < passed:
                continue
            before = _run_before(a, b, a_from, i, b_from, j)
            size = before + _run_after(a, b, i, a_to, j, b_to)
            first, other = i - before, j - before
            rare = min(len(places[line]) for line in a[first : first + size])
            passed = first + size
            beyond = max(beyond, other + size)
            if rare < rarest or (rare == rarest and size > longest):
                best, rarest, longest = (first, other, size), rare, size
        j = beyond
    return best


def _slide_down(a: Sequence[str], b: Sequence[str], blocks: list[Block]) -> list[Block]:
    """The same with every insertion and deletion as far down as it can go.

    A function that is inserted between two others may be seen to end with the blank line before or after it. Two sides
    that insert at the same place must be seen to do so, else their changes would count as apart.
    """
    below: list[Block] = []
    for i, j, size in reversed([(0, 0, 0), *blocks]):
        while below:
            k, m, rest = below[-1]
            deleted, inserted = k - (i + size), m - (j + size)
            if not deleted and not inserted:
                below.pop()
                size += rest
                continue
            if (deleted and inserted) or not (a[i + size] == a[k] if deleted else b[j + size] == b[m]):
                break
            size += 1
            below.pop()
            if rest > 1:
                below.append((k + 1, m + 1, rest - 1))
        below.append((i, j, size))
    return [block for block in reversed(below) if block[2]]
