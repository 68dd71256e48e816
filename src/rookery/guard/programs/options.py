"""The options and operands of a command, as most programs read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.guard.command import Word


@dataclass(frozen=True, slots=True)
class Options(Record):
    """What follows a program's name."""

    flags: tuple[tuple[str, Word | None], ...]
    """Options with their values, `-abc` taken apart."""
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """True if one of the options is there; a long one may be shortened, as programs allow."""
        return any(_means(flag, name) for flag, _ in self.flags for name in names)

    def values(self, *names: str) -> list[Word]:
        """The values of the options."""
        return [value for flag, value in self.flags for name in names if value is not None and _means(flag, name)]

    def has_others(self, names: Iterable[str]) -> bool:
        """True if there is an option that is none of these."""
        return any(flag not in names for flag, _ in self.flags)

    @property
    def may_hide_options(self) -> bool:
        """True if an operand may turn out to be an option."""
        return any(word.may_be_option for word in self.operands)


def read(words: Iterable[Word], takes: str = "", longs: Iterable[str] = ()) -> Options:
    """Split words; `takes` are the letters that take a value, `longs` the long options that take the next word."""
    flags: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    waiting = iter(words)
    for word in waiting:
        text = word.text
        if word.known and text == "--":
            operands += waiting
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        name, equals, value = text.partition("=")
        if text.startswith("--") and equals:
            flags.append((name, word.replace(text=value)))
            continue
        if text.startswith("--"):
            flags.append((name, next(waiting, None) if name in longs else None))
        for i, letter in enumerate(text[1:] if not text.startswith("--") else "", 2):
            if letter in takes:
                flags.append((f"-{letter}", word.replace(text=text[i:]) if text[i:] else next(waiting, None)))
                break
            flags.append((f"-{letter}", None))
        if not word.known:
            operands.append(word)
    return Options(tuple(flags), tuple(operands))


def _means(flag: str, name: str) -> bool:
    return flag == name or (flag.startswith("--") and len(flag) > 3 and name.startswith(flag))
