"""Takes credentials out of what a program prints, before it is written anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from rookery.environment.model import is_credential
from rookery.events.redact import HIDDEN

SHORTEST = 6
"""Shorter values are not taken out: they are a part of too many words."""


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
        forms = {form for value in values for form in (value, json.dumps(value)[1:-1])}
        self._values = sorted((os.fsencode(form) for form in forms), key=len, reverse=True)
        self._rest = b""

    def take(self, chunk: bytes) -> bytes:
        """What can be passed on by now: all but the end, if that may be the beginning of a value."""
        data = self._rest + chunk
        for value in self._values:
            data = data.replace(value, HIDDEN.encode())
        end = len(data) - max((_overlap(data, value) for value in self._values), default=0)
        self._rest = data[end:]
        return data[:end]

    def end(self) -> bytes:
        """What was held back: nothing more will come."""
        rest, self._rest = self._rest, b""
        return rest


def _overlap(data: bytes, value: bytes) -> int:
    """How many bytes at the end of the data are the beginning of the value."""
    lengths = range(min(len(value) - 1, len(data)), 0, -1)
    return next((length for length in lengths if data.endswith(value[:length])), 0)
