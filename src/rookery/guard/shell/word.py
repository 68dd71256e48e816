"""A word of a command as far as it can be known before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record


@dataclass(frozen=True, slots=True)
class Word(Record):
    """`text` is all of it if `known`, else what it surely begins with; with `glob`, a pattern that files may match."""

    text: str
    known: bool = True
    glob: bool = False


def names(text: str) -> frozenset[str]:
    """The names that stand in a text, with blanks between them."""
    return frozenset(text.split())
