"""A file as lines: what surrounds them (line ends, byte order mark, last newline) is kept apart and merged apart.

Two sides that differ only in line ends then have the same lines, and no rule has to consider them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.record import Record

_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Text(Record):
    """The lines of a file without their ends, and how they are ended."""

    lines: tuple[str, ...]
    ending: str = "\n"
    marked: bool = False
    ended: bool = True

    def encode(self) -> bytes:
        """The bytes of the file."""
        body = self.ending.join(self.lines)
        last = self.ending if self.ended and self.lines else ""
        return ((_MARK if self.marked else "") + body + last).encode()


def read(content: bytes) -> Text | None:
    """The lines of a file, or None if it is not text in UTF-8. Encoding them again gives the same bytes."""
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    marked = text.startswith(_MARK)
    if marked:
        text = text[1:]
    if not text:
        return Text((), marked=marked)
    # A file with both kinds of line ends keeps the carriage returns in its lines: nothing is made uniform unasked.
    ending = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
    ended = text.endswith(ending)
    lines = text.split(ending)
    if ended:
        lines.pop()
    return Text(tuple(lines), ending, marked, ended)


def surround(lines: tuple[str, ...], base: Text | None, ours: Text, theirs: Text) -> Text:
    """Merged lines with the ends that the sides agree on, or that one side has changed."""
    return Text(
        lines,
        theirs.ending if base and ours.ending == base.ending else ours.ending,
        theirs.marked if base and ours.marked == base.marked else ours.marked,
        theirs.ended if base and ours.ended == base.ended else ours.ended,
    )


def has_text(lines: Iterable[str]) -> bool:
    """True if a line is not blank."""
    return any(line.strip() for line in lines)


def readable(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that are not blank, without the blanks at their ends."""
    return tuple(line.rstrip() for line in lines if line.strip())
