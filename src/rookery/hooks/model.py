"""Who calls at an event of an agent's program, and what Rookery answers."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.json import dumps
from rookery.base.record import Record
from rookery.sessions.model import Session

DENIED = 2
"""The exit status that keeps a tool from running."""


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """The answer to the program."""

    status: int = 0
    out: str = ""
    err: str = ""


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """The agent whose program calls, as its row says."""

    session: Session
    turn_id: str | None


def refuse(reason: str, hint: str) -> Answer:
    """Keep the tool from running, and tell the agent why and what to do instead.

    Programs that read the decision show it alone. Others take the status for it, and put their own words before ours.
    """
    text = f"rook: {reason}" + (f"\n  instead: {hint}" if hint else "")
    return Answer(DENIED, decide("deny", text), text)


def decide(decision: str, reason: str = "") -> str:
    """The answer to a tool that a program is about to use: `allow`, `deny` or `ask`."""
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    return dumps({"hookSpecificOutput": output | ({"permissionDecisionReason": reason} if reason else {})})
