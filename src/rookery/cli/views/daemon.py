"""How the daemon's status and log look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Fields, line, text


def status(found: Any, _values: dict[str, Any]) -> list[Block]:
    """Whether it runs, and how it is."""
    if found.stopped_pid is not None:
        if not found.running_turns:
            return [text("The daemon has left; the next command starts another.")]
        turns = "a turn is" if found.running_turns == 1 else f"{found.running_turns} turns are"
        return [text(f"The daemon has left; as {turns} running, another one starts by itself in a moment.")]
    if not found.is_running:
        return [text("No daemon is running; the next command starts one.")]
    state = ("running", "good") if found.answers else ("running, but does not answer", "bad")
    rows = [
        ("daemon", line(state)),
        ("process", line(f"{found.pid}, since {found.since}")),
        ("version", line(found.version)),
        ("socket", line(found.socket)),
    ]
    if found.resident_bytes is not None:
        rows += [
            ("memory", line(f"{found.resident_bytes / 1e6:.0f} MB")),
            ("threads", line(str(found.threads))),
            ("limits", line(f"nice {found.nice}, {found.open_files_limit} open files")),
            ("cgroup", line(found.cgroup or "none")),
        ]
    return [Fields((*rows, ("log", line((found.log, "dim")))))]


def log_line(found: Any, _values: dict[str, Any]) -> list[Block]:
    """One line of the log."""
    return [text(found.line)]
