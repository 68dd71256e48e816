"""Where a command stands: what surrounds it decides how it is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.guard.shell.word import Word

Cwds = frozenset[str | None]

MAIN, WHILE, FOR = "", "while", "for"


@dataclass(frozen=True, slots=True)
class Scene(Record):
    """The surroundings of one simple command."""

    cwds: Cwds
    """The folders in which it may run; None stands for one that is not known."""
    run: Callable[[str, Scene], None]
    """Judges a script within this one: that of `bash -c`, of `eval`, of a here-document."""
    stdin: Word | None = None
    """What it reads, where that is written in the script."""
    is_piped: bool = False
    """It reads what another command writes."""
    loop: str = MAIN
    outer: Callable[[str], list[Word]] | None = None
    """What the variables of the script around it may be, where it runs in the same shell."""
    is_eval: bool = False
    """It runs in the shell of the script around it, and must not change what that one goes by."""
    may_block: bool = False
    """It runs in the background, or no longer than a given time."""
