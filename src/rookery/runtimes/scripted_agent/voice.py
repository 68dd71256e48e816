"""How the agent reports what it does: as JSON for a program, and as text for a person in a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from rookery.base.text import one_line

_WIDTH = 140
_LINES = 20


class Voice:
    """Writes events as JSON, one object a line; in a terminal also as text on the screen."""

    def __init__(self, file: TextIO, *, on_screen: bool = False) -> None:
        self._file = file
        self._on_screen = on_screen

    def tell(self, kind: str, **data: Any) -> None:
        """Write an event, with the fields of a `TurnEvent` of that kind, at once: a kill must not lose it."""
        self._file.write(json.dumps({"type": kind} | data) + "\n")
        self._file.flush()
        if self._on_screen:
            sys.stdout.writelines(line + "\r\n" for line in _shown(kind, data))
            sys.stdout.flush()


def _shown(kind: str, data: dict[str, Any]) -> list[str]:
    if kind == "text":
        return [f"● {one_line(line, _WIDTH)}" for line in data["text"].splitlines()]
    if kind == "tool":
        output = [one_line(line, _WIDTH) for line in data["output"].splitlines()[-_LINES:]]
        mark = "✓" if data["ok"] else "✗"
        tool = f"{mark} {data['name']} {one_line(json.dumps(data['input']), _WIDTH)}"
        return [tool, *(f"  {line}" for line in output)]
    if kind == "file":
        return [f"✎ {data['path']} {data['change']}"]
    if kind == "error":
        return [f"error: {one_line(data['message'], _WIDTH)}"]
    if kind == "usage":
        return [f"· {data['input']} tokens in, {data['output']} out"]
    return []
