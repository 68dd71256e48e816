"""How mail looks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rookery.base.json import dumps
from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Table, line, next_page, text
from rookery.config.environ import now
from rookery.mail.group_ops import Group
from rookery.mail.model import Checked, Message, Opened, Purged, Sent

_PRIORITIES = {"urgent": "bad", "high": "busy", "normal": "", "low": "dim"}
_SUBJECT_WIDTH = 100
_AGES = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def sent(result: Sent, _values: dict[str, Any]) -> list[Block]:
    """What was sent, and to whom."""
    blocks: list[Block] = [
        Paragraph(tuple(line("sent ", (message.id, "id"), f" to {message.to}") for message in result.messages))
    ]
    if result.not_alive:
        names = ", ".join(result.not_alive)
        blocks.append(text(f"not alive: {names}; the mail is kept, and not read for now", "busy"))
    return blocks


def checked(result: Checked, _values: dict[str, Any]) -> list[Block]:
    """New mail at length, or the text for a prompt as it is."""
    if result.text is not None:
        return [text(result.text.rstrip("\n"))] if result.text else []
    if not result.messages:
        return [text("No mail.", "dim")]
    blocks = [block for message in result.messages for block in _one(message)]
    if result.waiting:
        blocks.append(text(f"{result.waiting} more: `rook mail check` shows them", "dim"))
    return blocks


def opened(messages: list[Opened], _values: dict[str, Any]) -> list[Block]:
    """Messages at length, each with its thread."""
    blocks: list[Block] = []
    for message in messages:
        blocks += _one(message)
        if len(message.messages) > 1:
            steps = tuple(_step(step, message.id) for step in message.messages)
            blocks += [text("thread", "dim"), Paragraph(steps, 2)]
    return blocks


def waited(message: Message | None, _values: dict[str, Any]) -> list[Block]:
    """The message that came, if one did."""
    return [text("No mail came.", "dim")] if message is None else _one(message)


def table(messages: list[Message], values: dict[str, Any]) -> list[Block]:
    """Mail in a table."""
    if not messages:
        return [text("No mail.", "dim")]
    at = now()
    rows = tuple(
        (
            line(("●", "busy") if message.read_at is None else " "),
            line((message.id, "id")),
            line(one_line(message.sender)),
            line(message.recipient, (f" {message.audience}" if message.audience else "", "dim")),
            line(message.type),
            line((message.priority, _PRIORITIES.get(message.priority, ""))),
            line((_age(message.created_at, at), "dim")),
            line((one_line(message.subject, _SUBJECT_WIDTH), "title" if message.read_at is None else "")),
        )
        for message in messages
    )
    blocks: list[Block] = [Table(("", "id", "from", "to", "type", "priority", "age", "subject"), rows, stretch=7)]
    return blocks + next_page(messages)


def purged(result: Purged, _values: dict[str, Any]) -> list[Block]:
    """How much was deleted."""
    count = result.deleted
    return [text(f"deleted {count} message{'' if count == 1 else 's'}")]


def group(result: Group, _values: dict[str, Any]) -> list[Block]:
    """One group."""
    return [Paragraph((line((f"@{result.name}", "id"), f"  {', '.join(result.members)}"),))]


def groups(results: list[Group], _values: dict[str, Any]) -> list[Block]:
    """Every group."""
    if not results:
        return [text("No groups: `rook group create NAME MEMBER…` makes one.", "dim")]
    rows = tuple((line((f"@{group.name}", "id")), line(", ".join(group.members))) for group in results)
    return [Table(("group", "members"), rows)]


def group_deleted(result: Group, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted @{result.name}: {', '.join(result.members)}")]


def _one(message: Message) -> list[Block]:
    rows = [
        ("subject", line((one_line(message.subject), "title"))),
        ("id", line((message.id, "id"))),
        ("from", line(one_line(message.sender))),
        ("to", line(message.recipient, (f" {message.audience}" if message.audience else "", "dim"))),
        ("type", line(message.type)),
        ("priority", line((message.priority, _PRIORITIES.get(message.priority, "")))),
        ("at", line((message.created_at, "dim"))),
        ("answers", line((message.reply_to or "", "id"))),
        ("payload", line(_payload(message))),
    ]
    blocks: list[Block] = [Fields(tuple((name, value) for name, value in rows if value))]
    if message.body:
        blocks.append(text(message.body.rstrip("\n"), indent=2))
    return [*blocks, text("")]


def _payload(message: Message) -> str:
    return one_line(dumps(message.payload)) if message.payload else ""


def _step(message: Message, current: str) -> Line:
    mark = "▸ " if message.id == current else "  "
    return line(
        mark,
        (message.id, "id"),
        f"  {one_line(message.sender)} → {message.recipient}  ",
        (one_line(message.subject, _SUBJECT_WIDTH), "dim"),
    )


def _age(created_at: str, at: float) -> str:
    seconds = max(0, int(at - datetime.fromisoformat(created_at).timestamp()))
    name, size = next(((name, size) for name, size in _AGES if seconds >= size), ("s", 1))
    return f"{seconds // size}{name}"
