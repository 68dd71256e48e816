"""What an agent did last, in words: from its newest records in the telemetry, and the mail that it sent last."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.ids import with_handles
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.events.telemetry import Entry
from rookery.mail.model import Message
from rookery.roles.tools import READERS, SHELL, WRITERS
from rookery.runtimes.model import DENIED, ERROR, FILE, TEXT, TOOL

CALL = "call"
"""The record of a tool call that has begun."""
_WIDTH = 60
_SENT = {"question": "asked {}", "escalation": "escalated to {}"}
"""What sending a message of a type is called; of all others, `wrote to …`."""


@dataclass(frozen=True, slots=True)
class LastAction(Record):
    """What an agent did last, such as `edited src/app.py`."""

    text: str
    at: str | None
    """When; None where the state says it."""
    is_going_on: bool = False
    """It has begun, and not ended."""
    is_mail: bool = False
    """It sent a message."""


def last_action(entries: Iterable[Entry], sent: Message | None, worktree: str) -> LastAction | None:
    """The newest of both that says something; the records come newest first."""
    actions = (_of_entry(entry, worktree) for entry in entries)
    newest = next((action for action in actions if action is not None), None)
    if sent is None or (newest is not None and (newest.at or "") > sent.created_at):
        return newest
    return of_message(sent)


def of_message(sent: Message) -> LastAction:
    """That an agent sent a message."""
    whom = one_line(sent.audience or sent.recipient, _WIDTH)
    return LastAction(_SENT.get(sent.type, "wrote to {}").format(whom), sent.created_at, is_mail=True)


def of_screen(screen: str, at: str | None = None) -> LastAction | None:
    """The last line that a terminal shows, for a program that reports nothing."""
    lines = [line.strip() for line in screen.splitlines() if any(char.isalnum() for char in line)]
    return LastAction(one_line(lines[-1], _WIDTH), at) if lines else None


def _of_entry(entry: Entry, worktree: str) -> LastAction | None:
    text = _words(entry, worktree)
    return LastAction(one_line(with_handles(text), _WIDTH), entry.at, is_going_on=entry.kind == CALL) if text else None


def _words(entry: Entry, worktree: str) -> str:
    data = entry.data
    if entry.kind == FILE:
        return f"{'created' if data.get('change') == 'created' else 'edited'} {entry.name}"
    if entry.kind == DENIED:
        return f"was denied {_tool(entry, worktree)[1]}"
    if entry.kind in (CALL, TOOL):
        verb, what = _tool(entry, worktree)
        if _is_own_mail(what):
            return ""  # the message itself says more
        done, begun = verb
        return f"{begun} {what}" if entry.kind == CALL else f"{done} {what}{' (failed)' if entry.is_error else ''}"
    if entry.kind == TEXT and isinstance(data.get("text"), str):
        return f"said: {data['text']}"
    return f"reported an error: {data.get('message', '')}" if entry.kind == ERROR else ""


def _tool(entry: Entry, worktree: str) -> tuple[tuple[str, str], str]:
    """What using the tool is called, done and begun, and what it was used on."""
    arguments = entry.data.get("input")
    arguments = arguments if isinstance(arguments, dict) else {}
    if isinstance(arguments.get("command"), str) and (entry.name in SHELL or len(arguments) == 1):
        return ("ran", "running"), arguments["command"].strip()
    if isinstance(arguments.get("args"), list):
        return ("ran", "running"), " ".join(map(str, (entry.name, *arguments["args"])))
    for tools, verb in ((WRITERS, ("edited", "editing")), (READERS, ("read", "reading"))):
        path = next((arguments[name] for name in tools.get(entry.name, ()) if name in arguments), None)
        if isinstance(path, str):
            return verb, _inside(path, worktree)
    return ("used", "using"), entry.name or "a tool"


def _inside(path: str, worktree: str) -> str:
    inside = os.path.relpath(path, worktree) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


def _is_own_mail(command: str) -> bool:
    return command.startswith(("rook mail send", "rook mail reply"))
