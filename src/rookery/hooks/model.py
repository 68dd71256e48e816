"""Who calls at an event of an agent's program, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record

DENIED = 2
"""The exit status that keeps a tool from running."""


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What the program is told."""

    status: int = 0
    out: str = ""
    err: str = ""


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """The agent whose program calls, as its row says."""

    session_id: str
    agent: str
    role: str
    profile: str
    worktree: str
    branch: str
    base: str
    scope: tuple[str, ...]
    tools: tuple[str, ...]
    task_id: str | None
    mode: str
    turn_id: str | None


def refuse(reason: str, hint: str) -> Answer:
    """The tool does not run, and the agent is told why and what to do instead."""
    return Answer(DENIED, err=f"rook: {reason}" + (f"\n  instead: {hint}" if hint else ""))
