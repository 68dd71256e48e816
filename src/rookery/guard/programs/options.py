"""The options and operands of a command, in the way that most programs read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.guard.command import Word


@dataclass(frozen=True, slots=True)
class Options(Record):
    """What stands behind a program's name."""

    given: tuple[tuple[str, Word | None], ...]
    """Options with their values, `-abc` taken apart."""
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """True if one of the options is there; a long one may be shortened, as programs allow."""
        return any(_means(given, name) for given, _ in self.given for name in names)

    def values(self, *names: str) -> list[Word]:
        """The values of the options."""
        return [value for given, value in self.given for name in names if value is not None and _means(given, name)]

    @property
    def may_hide_options(self) -> bool:
        """True if a word is not known well enough to say that it is no option."""
        return any(not word.known and word.text[:1] in ("", "-") for word in self.operands)


def read(words: Sequence[Word], takes: str = "", longs: Iterable[str] = ()) -> Options:
    """Split words; `takes` are the letters that take a value, `longs` the long options that take the next word."""
    given: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        text = word.text
        if word.known and text == "--":
            operands += waiting
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            if equals:
                given.append((name, word.replace(text=value)))
            else:
                takes_next = name in longs and waiting
                given.append((name, waiting.pop(0) if takes_next else None))
                if not word.known:
                    operands.append(word)
        else:
            _read_letters(word, takes, waiting, given)
            if not word.known:
                operands.append(word)
    return Options(tuple(given), tuple(operands))


def _read_letters(word: Word, takes: str, waiting: list[Word], given: list[tuple[str, Word | None]]) -> None:
    letters = word.text[1:]
    for i, letter in enumerate(letters):
        if letter not in takes:
            given.append((f"-{letter}", None))
            continue
        rest = letters[i + 1 :]
        given.append((f"-{letter}", word.replace(text=rest) if rest else waiting.pop(0) if waiting else None))
        return


def _means(given: str, name: str) -> bool:
    if given == name:
        return True
    return given.startswith("--") and len(given) > 3 and name.startswith("--") and name.startswith(given)
