"""What a turn's program has said so far: each event as one record, and what the turn's end will be judged by."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.runtimes.model import DENIED, ERROR, FILE, LIMIT, RESULT, SESSION, TOOL, USAGE, TurnEvent


@dataclass(frozen=True, slots=True)
class Said(Record):
    """One thing that the program did or said."""

    kind: str
    name: str
    is_error: bool
    millis: int | None
    data: dict[str, Any]


class Heard:
    """Listens to one turn. `write` is called with every record, `begin` with how the program names the conversation."""

    def __init__(self, worktree: str, write: Callable[[Said], None], begin: Callable[[str], None]) -> None:
        self._worktree = worktree
        self._write = write
        self._begin = begin
        self._conversation = ""
        self.usage: list[dict[str, Any]] = []
        self.failure = ""
        self.problem: dict[str, Any] = {}
        """What is known of a failure beyond its words: kind, status, when a limit is lifted."""
        self.has_result = False
        self._open_tools: dict[str, tuple[dict[str, Any], float]] = {}

    def take(self, event: TurnEvent) -> None:
        """Keep one event."""
        data = event.data
        if event.kind == SESSION:
            if self._conversation != str(data["id"]):
                self._conversation = str(data["id"])
                self._begin(self._conversation)
            return
        if event.kind == TOOL:
            whole = self._pair(data)
            if whole is None:
                return
            data = whole
        if event.kind == USAGE:
            self.usage.append(data)
        if event.kind == LIMIT and data.get("resets_at"):
            self.problem["resets_at"] = data["resets_at"]
        if event.kind == ERROR:
            self.failure = str(data.get("message", "the program reported an error"))
            self.problem |= {key: data[key] for key in ("kind", "status") if key in data}
        if event.kind == RESULT:
            self.has_result = True
            if data.get("ok") is False:
                self.failure = self.failure or str(data.get("text", "")) or "the turn failed"
        if event.kind == FILE:
            data = data | {"path": self._inside(str(data["path"]))}
        self._say(event.kind, data)

    def finish(self) -> None:
        """Nothing more will come: what was begun and not ended was cut off."""
        for call, _begun in self._open_tools.values():
            self._say(TOOL, call | {"ok": False, "output": "[cut off]"})
        self._open_tools.clear()

    def _pair(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """A call and its end as one; nothing while it has only begun."""
        key = str(data.get("id", ""))
        if key and "ok" not in data:
            self._open_tools[key] = (data, time.monotonic())
            return None
        if "name" in data:
            return data
        call, begun = self._open_tools.pop(key, ({"name": "unknown", "input": {}}, time.monotonic()))
        return call | data | {"duration_ms": round((time.monotonic() - begun) * 1000)}

    def _inside(self, path: str) -> str:
        """A path as it is called in the worktree, if it is there."""
        inside = os.path.relpath(path, self._worktree) if os.path.isabs(path) else path
        return path if inside.startswith("..") else inside

    def _say(self, kind: str, data: dict[str, Any]) -> None:
        name = str(data.get("name") or data.get("path") or "") if kind in (TOOL, FILE, DENIED) else ""
        is_error = kind in (ERROR, DENIED) or data.get("ok") is False
        self._write(Said(kind, name, is_error, data.get("duration_ms"), data))
