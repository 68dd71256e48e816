"""How the project looks at one look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import plural
from rookery.cli.document import Block, Paragraph, line, text
from rookery.cli.views import agents
from rookery.overview.service import Overview
from rookery.tasks.model import Progress

_INBOX = "rook mail check"


def status(result: Overview, _values: dict[str, Any]) -> list[Block]:
    """What needs a person, agents, worktrees and tasks."""
    ended = agents.ended(result.ended, result.at)
    return [
        _inbox(result.inbox),
        agents.alive(result.agents, result.at),
        text(_worktrees(result) + _tasks(result.tasks), "dim"),
        *([ended] if ended.rows else []),
    ]


def _inbox(count: int) -> Block:
    if not count:
        return text("Nothing needs you.", "dim")
    need = f"{plural(count, 'thing')} {'needs' if count == 1 else 'need'} you: "
    return Paragraph([line((need, "note"), (f"`{_INBOX}`", "bold"))])


def _worktrees(result: Overview) -> str:
    count = result.worktrees
    idle = f", {count.without_agent} without an agent" if count.without_agent else ""
    return f"{plural(count.total, 'worktree')}{idle}\n" if count.total else ""


def _tasks(tasks: Progress) -> str:
    counts = {
        "ready": tasks.ready,
        "blocked": tasks.blocked,
        "in progress": tasks.in_progress,
        "in review": tasks.in_review,
        "failed": tasks.failed,
        "completed": tasks.completed,
    }
    shown = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"tasks: {shown or 'none'}"
