"""Conflicts to resolve, made in a line."""

from __future__ import annotations

from textwrap import dedent

from rookery.merge.resolve.files import Settings, resolve
from rookery.merge.resolve.model import Declined, Resolved, Sides
from rookery.merge.resolve.rules import ALL
from rookery.merge.resolve.rules.superseded import Lineage


def sides(path: str, base: str | None, ours: str, theirs: str, **more: tuple[str, ...]) -> Sides:
    """Texts as the three versions of a file; indentation that all lines share is not part of them."""
    history = {name: tuple(_text(version) for version in versions) for name, versions in more.items()}
    return Sides(path, None if base is None else _text(base), _text(ours), _text(theirs), **history)  # type: ignore[arg-type]


def resolved(conflict: Sides, *rules: str, lineage: Lineage | None = None) -> Resolved:
    """The result; fails if there is none, or if another rule made it."""
    got = resolve(conflict, lineage=lineage, settings=Settings(rules=ALL))
    assert isinstance(got, Resolved), got
    assert tuple(hunk.rule for hunk in got.hunks) == rules
    return got


def declined(conflict: Sides, settings: Settings | None = None, *, lineage: Lineage | None = None) -> Declined:
    """Why there is no result; fails if there is one."""
    got = resolve(conflict, lineage=lineage, settings=settings or Settings(rules=ALL))
    assert isinstance(got, Declined), got
    return got


def _text(text: str) -> bytes:
    return dedent(text).encode()
