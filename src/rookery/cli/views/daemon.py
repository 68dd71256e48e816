"""How the daemon's status and log look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import plural
from rookery.cli.document import Block, Cell, Fields, moment, text


def status(result: Any, _values: dict[str, Any]) -> list[Block]:
    """Whether it runs, and how it is."""
    if result.stopped_pid is not None:
        if not result.running_turns:
            return [text("The daemon has stopped. The next command starts another.")]
        turns = plural(result.running_turns, "running turn")
        return [text(f"The daemon has stopped. Another one starts in a moment for {turns}.")]
    if not result.is_running:
        return [text("No daemon is running; the next command starts one.")]
    state = ("running", "good") if result.answers else ("running, but does not answer", "bad")
    fields: dict[str, Cell] = {
        "daemon": state,
        "process": f"{result.pid}, started {moment(result.since)}",
        "version": result.version,
        "socket": result.socket,
    }
    if result.resident_bytes is not None:
        fields |= {
            "memory": f"{result.resident_bytes / 1e6:.0f} MB",
            "threads": str(result.threads),
            "limits": f"nice {result.nice}, {_open_files(result.open_files_limit)}",
            "cgroup": result.cgroup or "none",
        }
    return [Fields(fields | {"log": (result.log, "dim")}, shows_empty=True)]


def _open_files(limit: str) -> str:
    return plural(int(limit), "open file") if limit.isdecimal() else f"{limit} open files"


def log_line(result: Any, _values: dict[str, Any]) -> list[Block]:
    """One line of the log."""
    return [text(result.line)]
