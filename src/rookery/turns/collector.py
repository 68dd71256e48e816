"""Collects the events of one turn's program: each as one entry, and what the turn's end is judged by."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from rookery.runtimes.model import DENIED, ERROR, FILE, LIMIT, RESULT, SESSION, TOOL, USAGE, TurnEvent
from rookery.sessions.log import LogEntry


class EventCollector:
    """The events of one turn. `write` gets every entry, `begin` the program's name for the conversation."""

    def __init__(self, worktree: str, write: Callable[[LogEntry], None], begin: Callable[[str], None]) -> None:
        self._worktree = worktree
        self._write = write
        self._begin = begin
        self._conversation = ""
        self.usage: list[dict[str, Any]] = []
        self.failure = ""
        self.problem: dict[str, Any] = {}
        """What is known of a failure beyond its text: kind, status, when a limit is lifted."""
        self.has_result = False
        self._open_tools: dict[str, tuple[dict[str, Any], float]] = {}

    def add(self, event: TurnEvent) -> None:
        """Take in one event."""
        data = event.data
        if event.kind == SESSION:
            if self._conversation != str(data["id"]):
                self._conversation = str(data["id"])
                self._begin(self._conversation)
            return
        if event.kind == TOOL:
            call = self._pair(data)
            if call is None:
                return
            data = call
        elif event.kind == USAGE:
            self.usage.append(data)
        elif event.kind == LIMIT and data.get("resets_at"):
            self.problem["resets_at"] = data["resets_at"]
        elif event.kind == ERROR:
            self.failure = str(data.get("message", "the program reported an error"))
            self.problem |= {key: data[key] for key in ("kind", "status") if key in data}
        elif event.kind == RESULT:
            self.has_result = True
            if data.get("ok") is False:
                self.failure = self.failure or str(data.get("text", "")) or "the turn failed"
        elif event.kind == FILE:
            data = data | {"path": self._path_inside(str(data["path"]))}
        self._write_entry(event.kind, data)

    def finish(self) -> None:
        """No event will follow: tool calls that have not ended were cut off."""
        for call, _begun in self._open_tools.values():
            self._write_entry(TOOL, call | {"ok": False, "output": "[cut off]"})
        self._open_tools.clear()

    def _pair(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """A call and its end as one; None while it has only begun."""
        key = str(data.get("id", ""))
        if key and "ok" not in data:
            self._open_tools[key] = (data, time.monotonic())
            return None
        if "name" in data:
            return data
        call, begun = self._open_tools.pop(key, ({"name": "unknown", "input": {}}, time.monotonic()))
        return call | data | {"duration_ms": round((time.monotonic() - begun) * 1000)}

    def _path_inside(self, path: str) -> str:
        """A path relative to the worktree, if it is there."""
        inside = os.path.relpath(path, self._worktree) if os.path.isabs(path) else path
        return path if inside.startswith("..") else inside

    def _write_entry(self, kind: str, data: dict[str, Any]) -> None:
        name = str(data.get("name") or data.get("path") or "") if kind in (TOOL, FILE, DENIED) else ""
        is_error = kind in (ERROR, DENIED) or data.get("ok") is False
        self._write(LogEntry(kind, name, is_error, data.get("duration_ms"), data))
