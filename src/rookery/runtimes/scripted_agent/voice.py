"""How the agent reports what it does: as JSON for a program, and as text for a person in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

from rookery.base.text import one_line

_WIDTH = 140
_LINES = 20
_REPORTED = ("text", "tool", "file", "error")


class Voice:
    """Writes events as JSON, one object a line; in a terminal also as text on the screen."""

    def __init__(self, file: TextIO, *, on_screen: bool = False, report: Callable[[str], None] | None = None) -> None:
        self._file = file
        self._on_screen = on_screen
        self._report = report
        """Gets every event that Rookery is to know of at once; in a headless turn its runner reads the file."""

    def tell(self, kind: str, **data: Any) -> None:
        """Write an event, with the fields of a `TurnEvent` of that kind, at once: a kill must not lose it."""
        line = json.dumps({"type": kind} | data)
        self._file.write(line + "\n")
        self._file.flush()
        if self._on_screen:
            sys.stdout.writelines(line + "\r\n" for line in _shown(kind, data))
            sys.stdout.flush()
        if self._report is not None and kind in _REPORTED:
            self._report(line)


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
