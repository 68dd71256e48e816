"""Which lines two versions have in common: histogram diff, and Myers' where every common line is frequent.

Histogram diff anchors on the rarest common lines, as git's merge does, so that functions match functions and not each
other's braces. `difflib` takes seconds for what takes milliseconds here.
"""

from __future__ import annotations

from collections.abc import Sequence

Block = tuple[int, int, int]
"""Where a run of common lines begins in the one and in the other, and how long it is."""

_FREQUENT = 64
"""A line that occurs more often than this anchors nothing."""
_FURTHEST = 512
"""How many edits Myers' algorithm looks for before a stretch counts as wholly different."""


def matching(left: Sequence[str], right: Sequence[str]) -> list[Block]:
    """The runs of lines that both have, in order, none overlapping, none touching another in both."""
    known: dict[str, int] = {}
    a = [known.setdefault(line, len(known)) for line in left]
    b = [known.setdefault(line, len(known)) for line in right]
    found: list[Block] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a_from, a_to, b_from, b_to = todo.pop()
        start = a_from
        while a_from < a_to and b_from < b_to and a[a_from] == b[b_from]:
            a_from += 1
            b_from += 1
        if a_from > start:
            found.append((start, b_from - (a_from - start), a_from - start))
        stop = a_to
        while a_to > a_from and b_to > b_from and a[a_to - 1] == b[b_to - 1]:
            a_to -= 1
            b_to -= 1
        if stop > a_to:
            found.append((a_to, b_to, stop - a_to))
        if a_from == a_to or b_from == b_to:
            continue
        anchor, frequent = _anchor(a, a_from, a_to, b, b_from, b_to)
        if anchor is not None:
            i, j, size = anchor
            found.append(anchor)
            todo.append((a_from, i, b_from, j))
            todo.append((i + size, a_to, j + size, b_to))
        elif frequent:
            found.extend(_myers(a, a_from, a_to, b, b_from, b_to))
    return _slid(a, b, sorted(found))


def _anchor(a: list[int], a_from: int, a_to: int, b: list[int], b_from: int, b_to: int) -> tuple[Block | None, bool]:
    """The longest run around the rarest common line, and whether there were common lines too frequent to look at."""
    places: dict[int, list[int]] = {}
    for i in range(a_from, a_to):
        places.setdefault(a[i], []).append(i)
    best: Block | None = None
    rarest, longest = _FREQUENT + 1, 0
    frequent = False
    j = b_from
    while j < b_to:
        beyond = j + 1
        here = places.get(b[j], ())
        if len(here) > _FREQUENT:
            frequent = True
        elif here and len(here) <= rarest:
            passed = -1
            for i in here:
                if i < passed:
                    continue
                first, other = i, j
                rare = len(here)
                while first > a_from and other > b_from and a[first - 1] == b[other - 1]:
                    first -= 1
                    other -= 1
                    rare = min(rare, len(places[a[first]]))
                last, end = i + 1, j + 1
                while last < a_to and end < b_to and a[last] == b[end]:
                    rare = min(rare, len(places[a[last]]))
                    last += 1
                    end += 1
                passed = last
                beyond = max(beyond, end)
                if rare < rarest or (rare == rarest and last - first > longest):
                    best, rarest, longest = (first, other, last - first), rare, last - first
        j = beyond
    return best, frequent


def _myers(a: list[int], a_from: int, a_to: int, b: list[int], b_from: int, b_to: int) -> list[Block]:
    """The shortest edit, if it is short enough to be worth finding."""
    n, m = a_to - a_from, b_to - b_from
    reached = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(n + m, _FURTHEST) + 1):
        trace.append(reached.copy())
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
            x = reached[k + 1] if down else reached[k - 1] + 1
            y = x - k
            while x < n and y < m and a[a_from + x] == b[b_from + y]:
                x += 1
                y += 1
            reached[k] = x
            if x >= n and y >= m:
                return _walked(trace, n, m, a_from, b_from)
    return []


def _walked(trace: list[dict[int, int]], x: int, y: int, a_from: int, b_from: int) -> list[Block]:
    """The common lines on the way back from the end."""
    found = []
    for edits in range(len(trace) - 1, -1, -1):
        reached = trace[edits]
        k = x - y
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        before = k + 1 if down else k - 1
        from_x = reached[before] if edits else 0
        from_y = from_x - before if edits else 0
        start = from_x + (0 if down else 1) if edits else 0
        if x > start:
            found.append((a_from + start, b_from + start - k, x - start))
        x, y = from_x, from_y
    return found


def _slid(a: list[int], b: list[int], blocks: list[Block]) -> list[Block]:
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
