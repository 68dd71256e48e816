"""Takes credentials out of what a program prints, before it is written anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from rookery.environment.model import is_credential
from rookery.events.redact import HIDDEN

SHORTEST = 6
"""Shorter values are not taken out: they would stand in half of all words."""


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of an environment that must not be seen."""
    return tuple(value for name, value in environ.items() if len(value) >= SHORTEST and is_credential(name, value))


def mask(text: str, values: Iterable[str]) -> str:
    """The text without the values."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


class Mask:
    """The same for bytes that come in pieces: a value may be cut in two. As JSON writes it, it is taken out too."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {form for value in values for form in (value, json.dumps(value)[1:-1])}
        self._values = sorted((os.fsencode(each) for each in found), key=len, reverse=True)
        self._rest = b""

    def take(self, chunk: bytes) -> bytes:
        """What can be passed on by now: all but the end, if that may be the beginning of a value."""
        data = self._hide(self._rest + chunk)
        held = self._held(data)
        self._rest = data[len(data) - held :]
        return data[: len(data) - held]

    def end(self) -> bytes:
        """What was held back: nothing more will come."""
        rest, self._rest = self._rest, b""
        return rest

    def _hide(self, data: bytes) -> bytes:
        for value in self._values:
            data = data.replace(value, HIDDEN.encode())
        return data

    def _held(self, data: bytes) -> int:
        longest = 0
        for value in self._values:
            for length in range(min(len(value) - 1, len(data)), longest, -1):
                if data.endswith(value[:length]):
                    longest = length
                    break
        return longest
