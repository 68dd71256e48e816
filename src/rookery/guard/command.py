"""A command as the guard sees it: its words as far as they are known, and the shell that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rookery.base.record import Record

Cwds = frozenset[str | None]
"""Folders; None stands for one that is not known."""

MAIN, WHILE, FOR = "", "while", "for"


@dataclass(frozen=True, slots=True)
class Word(Record):
    """`text` is all of it if `known`, else what it surely begins with; with `glob`, a pattern that files may match."""

    text: str
    known: bool = True
    glob: bool = False

    @property
    def may_be_option(self) -> bool:
        """True if the word is not known well enough to say that it is no option."""
        return not self.known and self.text[:1] in ("", "-")


UNKNOWN = Word("", known=False)


@dataclass(frozen=True, slots=True)
class Shell(Record):
    """What surrounds one simple command."""

    cwds: Cwds
    """The folders in which it may run."""
    run: Callable[[str, Shell], None]
    """Judges a script within this one: that of `bash -c`, of `eval`, of a here-document."""
    stdin: Word | None = None
    """What it reads, where the script itself says so."""
    is_piped: bool = False
    """It reads the output of another command."""
    loop: str = MAIN
    outer: Callable[[str], list[Word]] | None = None
    """The values that the variables of the script around it may have, where both run in the same shell."""
    is_eval: bool = False
    """It runs in the shell of the script around it, and must not change the folder or the variables there."""
    may_block: bool = False
    """It runs in the background, or under a time limit."""


def names(text: str) -> frozenset[str]:
    """The names in a text, with blanks between them."""
    return frozenset(text.split())
