"""How the agent tells what it does: as JSON for a program, or as text for a person in a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol, TextIO

from rookery.base.text import one_line

_WIDTH = 140
_LINES = 20


class Voice(Protocol):
    """Where events go."""

    def tell(self, kind: str, **data: Any) -> None:
        """Tell of one event; its fields are those of a `TurnEvent` of that kind."""


class Lines:
    """One JSON object a line."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def tell(self, kind: str, **data: Any) -> None:
        """Write the event at once: whoever reads must know what was done if we are killed now."""
        self._file.write(json.dumps({"type": kind} | data) + "\n")
        self._file.flush()


class Screen:
    """Text for a person, and the same as JSON in a transcript."""

    def __init__(self, transcript: Lines) -> None:
        self._transcript = transcript

    def tell(self, kind: str, **data: Any) -> None:
        """Print the event."""
        self._transcript.tell(kind, **data)
        for line in _shown(kind, data):
            sys.stdout.write(line + "\r\n")
        sys.stdout.flush()


def _shown(kind: str, data: dict[str, Any]) -> list[str]:
    if kind == "text":
        return [f"● {one_line(line, _WIDTH)}" for line in data["text"].splitlines()]
    if kind == "tool":
        said = [one_line(line, _WIDTH) for line in data["output"].splitlines()[-_LINES:]]
        mark = "✓" if data["ok"] else "✗"
        return [f"{mark} {data['name']} {one_line(json.dumps(data['input']), _WIDTH)}", *(f"  {line}" for line in said)]
    if kind == "file":
        return [f"✎ {data['path']} {data['change']}"]
    if kind == "error":
        return [f"error: {one_line(data['message'], _WIDTH)}"]
    if kind == "usage":
        return [f"· {data['input']} tokens in, {data['output']} out"]
    return []
